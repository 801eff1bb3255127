// The page of `judge label`. A served page posts each rating; a page opened as a file keeps them in the browser.
"use strict";
{
  const byId = (id) => document.getElementById(id);
  const content = JSON.parse(byId("content").textContent);
  const { criteria, units, sources, own, pairwise, served } = content;
  const stored = (name) => { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } };
  const storedNames = (start) => { try { return Object.keys(localStorage).filter((name) => name.startsWith(start)); } catch { return []; } };
  const forget = (name) => { try { localStorage.removeItem(name); } catch { /* no storage */ } };
  const store = (name, value) => { try { localStorage.setItem(name, JSON.stringify(value)); return true; } catch { return false; } };
  const element = (name, text = "", properties = {}) => Object.assign(document.createElement(name), { textContent: text }, properties);

  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  if (stored("judge-label-theme")) root.dataset.theme = stored("judge-label-theme");
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark";
    store("judge-label-theme", root.dataset.theme);
  });

  const asked = new URLSearchParams(location.search).get("rater");
  const rater = content.rater ?? (content.raters.length === 1 ? content.raters[0] : content.raters.find((name) => name === asked));
  if (rater === undefined) byId("ask").hidden = false;
  else begin();

  function begin() {
    // Ratings by key [text, criterion, repeat]: {value, comment, seconds}; a value of null was taken back.
    const keyOf = (text, criterion, repeat) => JSON.stringify([text, criterion, repeat]);
    const place = `judge-label ${content.id} ${rater} `;  // each rating has a key of its own: two tabs overwrite nothing
    const steps = content.orders[rater].flatMap(([text, repeat, flip]) => criteria.map((criterion) => (
      { text, flip, repeat, criterion, key: keyOf(text, criterion.name, repeat), first: keyOf(text, criterion.name, false) })));
    const ratings = new Map(content.done.map(([text, criterion, repeat, value, comment]) => [keyOf(text, criterion, repeat), { value, comment }]));
    // What is not yet on the disk; without a server, all ratings of this browser.
    const queue = new Map(storedNames(place).map((name) => [name.slice(place.length), stored(name)]));
    for (const [key, rating] of queue) ratings.set(key, rating);
    const valueOf = (step) => ratings.get(step.key)?.value ?? null;
    const rated = (step) => valueOf(step) !== null;
    // A text is shown again only if it was rated the first time.
    const open = (step) => !rated(step) && (!step.repeat || (ratings.get(step.first)?.value ?? null) !== null);
    // Comments that are not part of a rating yet, by key.
    const draftPlace = `judge-label-draft ${content.id} ${rater} `;
    const drafts = new Map(storedNames(draftPlace).map((name) => [name.slice(draftPlace.length), stored(name)]));
    const passed = new Set();  // skipped in this session
    const history = steps.filter(rated).map((step) => ({ step, before: null }));
    let at = 0, spent = 0, since = null, sending = false;

    const rowOf = (key, { value, comment, seconds }) => {
      const [text, criterion, repeat] = JSON.parse(key);
      return { text, rater, criterion, value, repeat, seconds: seconds ?? null, comment: comment ?? "" };
    };

    function problem(text) {
      const box = byId("problem");
      box.hidden = !text;
      box.textContent = text;
      if (text && served) {
        const button = element("button", "Save the unsent ratings as a file", { className: "button" });
        button.addEventListener("click", save);
        box.append(button);
      }
    }

    // Send what is not on the disk, oldest first; on any problem keep it and try again.
    async function send() {
      if (!served || sending) return;
      sending = true;
      let trouble = "", answers = true;
      const refused = new Map();  // one that is refused keeps no other back
      const unsent = () => [...queue].find(([key, rating]) => refused.get(key) !== rating);
      for (let next; answers && (next = unsent());) {
        const [key, rating] = next;
        try {
          const answer = await fetch(`${location.pathname.replace(/\/*$/, "/")}rate`, {
            method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(rowOf(key, rating)),
          });
          if (!answer.ok) {
            refused.set(key, rating);
            trouble = `judge label did not take a rating: ${await answer.text()}`;
          } else if (queue.get(key) === rating) {  // else it changed while it was sent
            queue.delete(key);
            // Another tab may have stored a newer one.
            if (JSON.stringify(stored(place + key)) === JSON.stringify(rating)) forget(place + key);
          }
        } catch {
          answers = false;
          trouble = "judge label does not answer. Is it still running?";
        }
      }
      sending = false;
      const number = queue.size === 1 ? "1 rating is" : `${queue.size} ratings are`;
      problem(trouble && `${trouble} ${number} kept in this page, which tries again every 2 seconds.`);
      if (trouble) setTimeout(send, 2000);
      if (!byId("end").hidden) finish();
    }

    function save() {
      const lines = [...queue].map(([key, rating]) => JSON.stringify(rowOf(key, rating)) + "\n");
      const link = element("a", "", { download: `ratings-${rater}.jsonl`, href: URL.createObjectURL(new Blob(lines, { type: "application/jsonl" })) });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }

    function put(step, value, comment, seconds) {
      const rating = { value, comment, seconds }, { key } = step;
      if (value !== null) draft(key, "");
      else if (ratings.get(key)?.comment) draft(key, ratings.get(key).comment);  // taken back: the comment stays in the field
      ratings.set(key, rating);
      queue.delete(key);
      queue.set(key, rating);
      const able = store(place + key, rating);
      if (!able && !served) problem("This browser keeps nothing for files. Save your ratings before you close the page.");
      send();
    }

    // Keep a comment until the text has a rating; an empty one is forgotten.
    function draft(key, comment) {
      if (comment) {
        drafts.set(key, comment);
        store(draftPlace + key, comment);
      } else if (drafts.delete(key)) forget(draftPlace + key);
    }

    // Another tab of this rater: take over its rating, so that none of this page follows that is older.
    addEventListener("storage", ({ key: name, newValue }) => {
      if (!name?.startsWith(place) || newValue === null) return;
      const key = name.slice(place.length), rating = JSON.parse(newValue);
      ratings.set(key, rating);
      if (queue.has(key)) queue.set(key, rating);
      progress();
      if (steps[at].key === key && !byId("rate").hidden) choices(steps[at]);
    });

    // Seconds in which the page was to be seen, since the step was shown.
    const stop = () => { if (since !== null) spent += performance.now() - since; since = null; };
    const start = () => { if (!document.hidden && since === null) since = performance.now(); };
    document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));

    function rate(value) {
      const step = steps[at], before = ratings.get(step.key) ?? null;
      stop();
      history.push({ step, before });
      put(step, value, byId("comment").value.trim(), Math.round(spent / 100) / 10);
      passed.delete(step);
      forward();
    }

    function forward() {
      const next = steps.findIndex((step, k) => k > at && open(step) && !passed.has(step));
      if (next < 0) finish();
      else show(next);
    }

    function skip() {
      passed.add(steps[at]);
      forward();
    }

    function undo() {
      const last = history.pop();
      if (!last) return;
      const { value = null, comment = "", seconds } = last.before ?? {};
      put(last.step, value, comment, seconds);
      show(steps.indexOf(last.step));
    }

    // Arrows go through all steps but repetitions whose first time is still to come.
    function move(by) {
      let to = at + by;
      while (steps[to] && !rated(steps[to]) && !open(steps[to])) to += by;
      if (steps[to]) show(to);
      else if (by > 0) finish();
    }

    function finish() {
      stop();
      const left = steps.filter((step) => open(step)).length, all = steps.filter(rated).length;
      byId("rate").hidden = true;
      byId("end").hidden = false;
      byId("end").querySelector("h2").textContent = left ? `${left} left` : "All done. Thank you!";
      let where = "Save the ratings, and send the file to whoever asked you.";
      if (served) where = queue.size ? "Not all of them are saved yet: leave this page open." : "Every rating is saved. You can close this page.";
      byId("end").querySelector("p").textContent = `${all} ratings. ${where}`;
      byId("skipped").hidden = !left;
      byId("skipped").textContent = left === 1 ? "Rate it" : "Rate them";
      byId("save-end").hidden = served;
      byId("end").focus({ preventScroll: true });
      progress();
      if (Object.keys(team).length > 1) refresh();
    }

    function progress() {
      const all = steps.filter(rated).length, total = steps.filter((step) => rated(step) || open(step) || step.repeat).length;
      const bar = document.querySelector(".progress");
      bar.firstElementChild.style.width = `${100 * all / total}%`;
      bar.ariaValueMax = total;
      bar.ariaValueNow = all;
      byId("who").textContent = `${rater} · ${all} of ${total} rated`;
    }

    // How far the other raters are, which the server knows.
    let team = content.progress;
    function others() {
      const names = Object.keys(team).filter((name) => name !== rater);
      byId("team").hidden = !names.length;
      byId("team").replaceChildren(...names.map((name) => {
        const [done, total] = team[name], line = element("span");
        line.append(element("bdi", name), ` ${done} of ${total}`);
        return line;
      }));
    }

    async function refresh() {
      if (document.hidden) return;
      try {
        const answer = await fetch(`${location.pathname.replace(/\/*$/, "/")}progress`);
        if (answer.ok) team = await answer.json();
      } catch { return; }  // sending a rating reports a server that is gone
      others();
    }

    // The data's own columns, folded: they stay open or closed from text to text.
    function facts(step) {
      const columns = own[step.text] ?? [];
      byId("own").hidden = !columns.length;
      byId("own").querySelector(".about").textContent = columns.map(([name]) => name).join(", ");
      byId("own").querySelector("dl").replaceChildren(...columns.map(([name, value]) => {
        const row = element("div");
        row.append(element("dt", name, { dir: "auto" }), element("dd", value, { dir: "auto" }));
        return row;
      }));
    }

    function article(heading, text, kind = "") {
      const box = element("article", "", { className: kind, tabIndex: 0 });
      for (const [name, words] of [].concat(heading instanceof Array ? heading : [[heading, text]])) {
        const body = element("div", words || "(empty text)", { className: words ? "text" : "text empty", dir: "auto" });
        box.append(element("h2", name, { lang: "en" }), body);
      }
      return box;
    }

    let drawn = "", beside = -1;
    function texts(step) {
      const [source, ...both] = units[step.text], shown = step.flip ? both.toReversed() : both;
      if (drawn !== step.text + step.flip) {
        const boxes = pairwise ? [article("First", shown[0], "output"), article("Second", shown[1], "output")] : [article("Text", shown[0], "output")];
        const around = beside === source && byId("texts").querySelector(".around");  // the same source stays where it is
        if (sources[source].length) boxes.unshift(around || article(sources[source], "", "around"));
        const top = around ? around.scrollTop : 0;
        byId("texts").replaceChildren(...boxes);
        if (around) around.scrollTop = top;
        if (drawn) byId("texts").querySelector(".output").scrollIntoView({ block: "nearest" });
        drawn = step.text + step.flip;
        beside = source;
      }
    }

    function show(number) {
      at = number;
      spent = 0;
      since = null;
      start();
      const step = steps[at], { criterion } = step;
      byId("rate").hidden = false;
      byId("end").hidden = true;
      texts(step);
      facts(step);
      byId("title").textContent = criterion.title;
      byId("lines").querySelector("div").replaceChildren(...criterion.lines.map((line) => element("p", line, { dir: "auto" })));
      byId("criteria").replaceChildren(...(criteria.length > 1 ? criteria : []).map((other, k) => {
        const to = at - criteria.indexOf(criterion) + k, value = valueOf(steps[to]);
        const button = element("button", value === null ? other.title : `${other.title} ${answers(steps[to]).find(([answer]) => answer === value)?.[1] ?? value}`);
        if (to === at) button.setAttribute("aria-current", "step");
        button.addEventListener("click", () => show(to));
        return button;
      }));
      byId("place").textContent = `${pairwise ? "Pair" : "Text"} ${Math.floor(at / criteria.length) + 1} of ${steps.length / criteria.length}`;
      byId("comment").value = drafts.get(step.key) ?? ratings.get(step.key)?.comment ?? "";
      choices(step);
      byId("undo").disabled = !history.length;
      byId("previous").disabled = at === 0;
      progress();
    }

    // The answers of a step: value, words and key.
    function answers(step) {
      if (pairwise) {
        const [left, right] = step.flip ? ["b", "a"] : ["a", "b"];
        return [[left, "First", "1"], [right, "Second", "2"], ["tie", "Tie", "0"]];
      }
      const { labels } = step.criterion, digits = labels.every((label) => /^\d$/.test(label));
      return labels.map((label, k) => [label, label, digits ? label : String((k + 1) % 10)]);
    }

    function choices(step) {
      const all = answers(step), value = valueOf(step);
      byId("ends").textContent = pairwise ? "" : `${step.criterion.ends[0]} (lowest) to ${step.criterion.ends[1]} (highest)`;
      byId("keys").textContent = all.length > 10 ? "Enter" : pairwise ? "1 2 0" : `${all[0][2]}–${all.at(-1)[2]}`;
      if (all.length > 10) {
        const field = element("input", "", { type: "text", inputMode: "decimal", value: value ?? "", autocomplete: "off", ariaLabel: `From ${all[0][0]} to ${all.at(-1)[0]}` });
        const submit = () => {
          const value = field.value.trim();
          field.setCustomValidity(all.some(([label]) => label === value) ? "" : `Write a value from ${all[0][0]} to ${all.at(-1)[0]}.`);
          if (field.reportValidity()) rate(value);
        };
        field.addEventListener("keydown", (event) => {
          if (event.key === "Enter" && !event.repeat) submit();
        });
        field.addEventListener("input", () => field.setCustomValidity(""));
        const button = element("button", "Rate");
        button.addEventListener("click", submit);
        byId("choices").replaceChildren(field, button);
        field.focus();
        return;
      }
      byId("choices").replaceChildren(...all.map(([answer, words, key]) => {
        const button = element("button", words, { ariaPressed: String(answer === value), dir: "auto" });
        if (words !== key) button.append(element("kbd", key));
        button.addEventListener("click", () => rate(answer));
        return button;
      }));
    }

    const hold = (event) => {
      if (rated(steps[at])) {  // a comment on a text that has its rating
        const { value, seconds } = ratings.get(steps[at].key);
        put(steps[at], value, event.target.value.trim(), seconds);
      }
    };
    byId("comment").addEventListener("input", (event) => draft(steps[at].key, event.target.value.trim()));
    byId("comment").addEventListener("change", hold);
    byId("undo").addEventListener("click", undo);
    byId("skip").addEventListener("click", skip);
    byId("previous").addEventListener("click", () => move(-1));
    byId("next").addEventListener("click", () => move(1));
    byId("back").addEventListener("click", () => show(at));
    byId("skipped").addEventListener("click", () => { passed.clear(); show(steps.findIndex(open)); });
    for (const id of ["save", "save-end"]) byId(id).addEventListener("click", save);
    byId("save").hidden = served;

    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (event.target.matches("input")) {
        const comment = event.target.id === "comment";
        if (event.key === "Escape" || (comment && event.key === "Enter")) event.target.blur();
        if (comment || !["u", "s", "c"].includes(event.key)) return;  // no letter is part of a number
      }
      if (byId("rate").hidden && !["u", "Backspace", "ArrowLeft"].includes(event.key)) return;
      const keys = { ArrowLeft: () => (byId("rate").hidden ? show(at) : move(-1)), ArrowRight: () => move(1), u: undo, Backspace: undo, s: skip, c: () => byId("comment").focus() };
      const answer = byId("rate").hidden ? null : answers(steps[at]).length <= 10 && answers(steps[at]).find(([, , key]) => key === event.key);
      const act = answer ? () => rate(answer[0]) : keys[event.key];
      if (!act) return;
      event.preventDefault();
      if (!event.repeat || event.key.startsWith("Arrow")) act();  // a key held down rates one text
    });
    addEventListener("beforeunload", (event) => { if (served && queue.size) event.preventDefault(); });

    byId("panel").classList.toggle("several", criteria.length > 1);
    // On a phone, a long criterion opens with a touch.
    if (matchMedia("(max-width: 60rem)").matches) byId("lines").open = criteria.every(({ lines }) => lines.join("").length < 200);
    others();
    if (Object.keys(team).length > 1) setInterval(refresh, 15000);
    // A comment was changed on a rated text, and the page closed before it was sent.
    for (const step of steps.filter((each) => rated(each) && drafts.has(each.key))) {
      const { value, seconds } = ratings.get(step.key);
      put(step, value, drafts.get(step.key), seconds);
    }
    const first = steps.findIndex(open);
    if (first >= 0) show(first);
    else { at = steps.length - 1; texts(steps[at]); finish(); }
    send();
  }
}
