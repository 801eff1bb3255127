(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("list"), output = document.getElementById("found"), told = document.getElementById("told");
  const [find, system, criterion, only, order, reverse, copied] = ["find", "system", "criterion", "show", "order", "reverse", "copied"].map((id) => document.getElementById(id));
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const counted = (n, what) => n.toLocaleString("en") + " " + what + (n === 1 ? "" : "s");
  const short = (x) => String(+x.toPrecision(3));
  const items = [...list.children].map((el, place) => ({ el, place, outputs: [] }));
  for (const item of items) {
    const peek = document.createElement("span"), from = item.el.querySelector(".given > .source:not(.brief), .text");
    peek.className = "peek";
    peek.textContent = from.textContent.slice(0, 200);
    item.el.querySelector("b").after(" ", peek);
    item.el.item = item;
  }
  [...list.querySelectorAll("article")].forEach((el, place) => el.closest(".item").item.outputs.push({ el, place }));
  let words = [], timer;

  // What items are sorted by: of the systems and the criterion that are chosen.
  const chosen = (select) => (select?.value ? +select.value : -1);
  const outputs = (item) => { const s = chosen(system); return s < 0 ? item.outputs : item.outputs.filter((o) => data.system[o.place] === s); };
  const columns = (c) => [...data.columns.keys()].filter((k) => c < 0 || data.columns[k] === c);
  const head = (c) => data.columns.indexOf(c);
  const numbers = (values) => values.filter((x) => typeof x === "number");
  const kinds = {
    low: (item, c, k) => ({ by: Math.min(...numbers(outputs(item).map((o) => data.values[o.place][k]))) }),
    flips: (item, c, k) => ({ by: -data.flips[item.place][k], text: counted(data.flips[item.place][k], "flip") }),
    gap: (item, c) => {
      const far = numbers(outputs(item).map((o) => data.gap[o.place][c + 1])).sort((a, b) => Math.abs(b) - Math.abs(a))[0] ?? NaN;
      return { by: -Math.abs(far), text: (far > 0 ? "judge" : data.overlap) + " +" + short(Math.abs(far)) };
    },
    spread: (item, c) => {
      const all = numbers(outputs(item).map((o) => (c < 0 ? data.mean[o.place] : data.values[o.place][head(c)])));
      const by = all.length > 1 ? Math.max(...all) - Math.min(...all) : NaN;
      return { by: -by, text: "spread " + short(by) };
    },
    mass: (item, c) => {
      const by = Math.min(...numbers(outputs(item).flatMap((o) => (c < 0 ? data.mass[o.place] : [data.mass[o.place][c]]))));
      return { by, text: "mass " + short(by) };
    },
  };
  const key = (item, wanted) => {
    const [kind, k] = wanted.split(" "), found = kinds[kind](item, chosen(criterion), +k);
    return Number.isFinite(found.by) ? { text: short(found.by), ...found } : null;
  };
  const failed = (item) => {
    const c = chosen(criterion);
    if (data.failed) return data.failed[item.place] > 0;
    return outputs(item).some((o) => columns(c).some((k) => data.values[o.place][k] === false));
  };

  // The words that are looked for, and those copied from the source, are marked without touching the texts.
  const marks = globalThis.Highlight && CSS.highlights ? { copied: new Highlight(), found: new Highlight() } : null;
  if (marks) for (const name in marks) { CSS.highlights.set(name, marks[name]); marks[name].priority = name === "found"; }
  const span = (node, start, length) => { const range = new Range(); range.setStart(node, start); range.setEnd(node, start + length); return range; };
  // The name and all that opens below it, but no prompt: the summary's excerpt of the source would count twice.
  const plain = (el) => {
    if (!el.querySelector(".sheet")) return el.textContent;
    const copy = el.cloneNode(true);
    for (const sheet of copy.querySelectorAll(".sheet")) sheet.remove();
    return copy.textContent;
  };
  const text = (item) => item.text ??= fold([item.el.querySelector("b"), ...[...item.el.children].slice(1)].map(plain).join("\n"));
  const hits = (item) => words.reduce((n, word) => n + text(item).split(word).length - 1, 0);
  const mark = (item) => {
    const skip = (node) => (node.parentElement.closest(".sheet, .peek") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const walk = document.createTreeWalker(item.el, NodeFilter.SHOW_TEXT, skip);
    for (let node; (node = walk.nextNode());) {
      const plain = node.data.toLowerCase();
      if (plain.length !== node.length) continue;
      for (const word of words) {
        for (let at = plain.indexOf(word), hit = false; at >= 0; at = plain.indexOf(word, at + word.length)) {
          marks.found.add(span(node, at, word.length));
          if (!hit) { node.parentElement.closest("details:not(.item)")?.setAttribute("open", ""); hit = true; }
        }
      }
    }
  };
  const part = (o, name) => { // a text by the name that sheets have for it: the output's own, or the item's
    if (name === "output") return o.el.querySelector(":scope > .text");
    const where = name === "source" ? ".source:not(.brief, .further)" : `[data-as="${CSS.escape(name)}"]`;
    return o.el.querySelector(where) ?? o.el.closest(".item").querySelector(".given " + where);
  };
  let pointed = null; // the output whose places alone are marked in the source
  const markOpen = () => {
    if (!marks) return;
    marks.found.clear();
    marks.copied.clear();
    for (const item of items) {
      if (!item.el.open || item.el.hidden) continue;
      if (words.length) mark(item);
      if (!copied?.checked) continue;
      for (const o of outputs(item)) {
        const mine = part(o, "output")?.firstChild, theirs = part(o, "source")?.firstChild;
        const shown = theirs && !(pointed && item.outputs.includes(pointed) && pointed !== o);
        for (const [start, length, there, size] of mine ? data.runs[o.place] : []) {
          marks.copied.add(span(mine, start, length));
          if (shown) marks.copied.add(span(theirs, there, size));
        }
      }
    }
  };

  // An item that is opened: its source can be scrolled by keys, and its prompts be read.
  // A prompt is a sheet with the texts of this page put in where the run put them.
  const sheet = (column, place) => { const [usual, others] = data.asked[column] ?? []; return data.sheets[others && place in others ? others[place] : usual]; };
  const prompt = (to, found, name) => {
    const box = document.createElement("details"), head = document.createElement("summary");
    box.className = "told sheet";
    head.textContent = "prompt";
    box.append(head);
    box.addEventListener("toggle", () => {
      if (box.children.length > 1) return;
      for (const [role, parts] of found) {
        const said = document.createElement("div");
        said.className = "text";
        said.dir = "auto";
        said.textContent = parts.map((words, k) => {
          if (k % 2 === 0) return words;
          const kind = words.slice(0, words.indexOf(" ")), el = name(words.slice(kind.length + 1));
          return (kind === "key" ? el?.dataset.key : el?.textContent) ?? "[…]";
        }).join("");
        if (found.length > 1) box.append(Object.assign(document.createElement("p"), { textContent: role, className: "role" }));
        box.append(said);
      }
    });
    to.insertBefore(box, to.querySelector(".reason"));
  };
  const judged = (o) => [...o.el.querySelectorAll(".judged > li")].map((li, k) => [li, li.dataset.c ?? k]);
  const meet = (item) => {
    if (item.met) return;
    item.met = true;
    const given = item.el.querySelector(".given");
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "What the texts were written from"]]) given?.setAttribute(name, value);
    for (const svg of item.el.querySelectorAll(".judged svg")) svg.setAttribute("role", "img");
    for (const o of item.outputs) {
      for (const [li, column] of judged(o)) {
        const found = sheet(column, o.place);
        if (found) prompt(li, found, (name) => part(o, name));
      }
    }
    for (const way of item.el.querySelectorAll("[data-pair]")) {
      const [first, second] = way.dataset.pair.split(" ").map((k) => item.outputs[k]);
      const found = sheet(way.closest("[data-c]").dataset.c, first.place + " " + second.place);
      if (found) prompt(way, found, (name) => ({ first: part(first, "output"), second: part(second, "output") })[name] ?? part(first, name));
    }
  };

  const restrict = () => { // to the system and the criterion that are chosen
    const s = chosen(system), c = chosen(criterion);
    for (const item of items) {
      for (const o of item.outputs) {
        o.el.hidden = s >= 0 && data.system[o.place] !== s;
        for (const [li, column] of judged(o)) li.hidden = c >= 0 && data.columns[column] !== c;
      }
      for (const el of item.el.querySelectorAll(":scope > [data-c]")) el.hidden = c >= 0 && data.columns[el.dataset.c] !== c;
    }
    show();
  };
  const show = () => {
    const top = only?.value && only.value !== "failed" ? only.value : "";
    const by = order.value || top, ends = reverse.checked ? -1 : 1;
    words = [...new Set([...fold(find.value).matchAll(/"([^"]+)"?|[^\s"]+/g)].map((m) => (m[1] ?? m[0]).trim()))].filter(Boolean);
    for (const item of items) item.key = by ? key(item, by) : null;
    let shown = items.filter((item) => outputs(item).length && words.every((word) => text(item).includes(word)) && (only?.value !== "failed" || failed(item)));
    if (top) {
      const keys = new Map(shown.map((item) => [item, key(item, top)]));
      shown = shown.filter((item) => keys.get(item)).sort((a, b) => keys.get(a).by - keys.get(b).by).slice(0, data.top);
    }
    const kept = new Set(shown);
    for (const item of items) {
      item.el.hidden = !kept.has(item);
      if (item.key) item.el.firstElementChild.dataset.key = item.key.text;
      else delete item.el.firstElementChild.dataset.key;
    }
    const sorted = [...items].sort((a, b) => (by ? !a.key - !b.key || (a.key && ends * (a.key.by - b.key.by)) : ends * (a.place - b.place)) || a.place - b.place);
    if (sorted.some((item, k) => list.children[k] !== item.el)) list.append(...sorted.map((item) => item.el));
    told.textContent = data.told[by] ?? "";
    const of = kept.size === items.length && !words.length ? "" : kept.size.toLocaleString("en") + " of " + counted(items.length, "item");
    output.textContent = words.length ? of + ", " + counted(shown.reduce((n, item) => n + hits(item), 0), "hit") : of;
    markOpen();
  };

  // An item has an address: #item=ID.
  const go = (el) => { el.firstElementChild.focus({ preventScroll: true }); el.scrollIntoView({ block: "nearest", behavior: "instant" }); };
  const follow = () => {
    let wanted;
    try { wanted = decodeURIComponent(location.hash); } catch { return; }
    const el = wanted.startsWith("#item=") && items.find((item) => decodeURIComponent(item.el.id) === wanted.slice(1))?.el;
    if (!el) return;
    if (el.hidden) {
      find.value = "";
      for (const select of [system, only]) if (select) select.value = "";
      restrict();
    }
    el.open = true;
    el.firstElementChild.focus({ preventScroll: true });
    el.scrollIntoView({ block: "start", behavior: "instant" });
  };
  list.addEventListener("toggle", (event) => {
    const item = event.target.item;
    if (!item) return;
    if (item.el.open) {
      meet(item);
      try { history.replaceState(null, "", "#" + item.el.id); } catch { /* in a frame that may not */ }
    }
    markOpen();
  }, true);
  addEventListener("hashchange", follow);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target === find && event.key === "Escape" && !find.value) return find.blur();
    if (event.target.closest?.('input[type="search"], select, textarea')) return;
    const at = event.target.closest?.(".item"), onName = at && event.target.closest("summary") === at.firstElementChild;
    const step = { j: 1, k: -1 }[event.key] ?? (onName ? { ArrowDown: 1, ArrowUp: -1 }[event.key] : 0);
    if (event.key === "/") {
      find.focus();
      find.select();
    } else if (step) {
      const shown = [...list.children].filter((el) => !el.hidden), next = at ? shown.indexOf(at) + step : step > 0 ? 0 : shown.length - 1;
      if (shown[next]) go(shown[next]);
    } else return;
    event.preventDefault();
  });
  const point = (event) => {
    const o = event.target.closest?.("article"), now = o ? o.closest(".item").item.outputs.find((one) => one.el === o) : null;
    if (copied?.checked && now && now !== pointed) { pointed = now; markOpen(); }
  };
  list.addEventListener("pointerover", point);
  list.addEventListener("focusin", point);

  find.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(show, 80); });
  for (const control of [system, criterion]) control?.addEventListener("change", restrict);
  for (const control of [only, order, reverse]) control?.addEventListener("change", show);
  copied?.addEventListener("change", () => { pointed = null; markOpen(); });
  document.querySelector(".controls").hidden = false;
  if ([find, system, criterion, only, order].some((control) => control?.value) || reverse.checked) restrict(); // what a browser has kept from before
  for (const item of items) if (item.el.open) meet(item);
  addEventListener("load", () => setTimeout(follow)); // after the browser's own way to an address, which takes the focus
})();
