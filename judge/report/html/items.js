// The item browser: search, filter, order, two systems side by side, and its state in the link.
if (byId("list")) {
  const data = JSON.parse(byId("data").textContent), list = byId("list");
  const [q, system, versus, column, order, failed, copied] = ["q", "system", "versus", "column", "order", "failed", "copied"].map(byId);
  const facets = data.facets.map((facet, k) => byId("facet-" + k));
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const counted = (n, noun) => n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");
  const items = [...list.children].map((el, place) => ({ el, place, name: data.items[place], outputs: [], at: 0 }));
  const itemOf = new Map(items.map((item) => [item.el, item]));
  [...list.querySelectorAll("article")].forEach((el, place) => itemOf.get(el.closest(".item")).outputs.push({ el, place }));
  let words = [], timer;

  // What items are ordered by: the scores of the chosen systems in the chosen column.
  const chosen = (select) => (select ? select.selectedIndex - 1 : -1);
  const leads = [...data.measures.keys()].filter((m) => data.measures[m].leads);
  const measures = () => (chosen(column) < 0 ? leads : [chosen(column)]);
  const fits = (o) => facets.every((select, k) => chosen(select) < 0 || data.facets[k].of[o.place] === chosen(select));
  const outputs = (item) => {
    const systems = [chosen(system), chosen(versus)].filter((k) => k >= 0);
    return item.outputs.filter((o) => fits(o) && (!systems.length || systems.includes(data.system[o.place])));
  };
  const share = (m, value) => {
    const { low, high, better } = data.measures[m], part = high > low ? (value - low) / (high - low) : 1;
    return better === "lower" ? 1 - part : part;
  };
  const shown = (m, value) => {
    const { labels, ends, places } = data.measures[m];
    if (labels.length) return labels[ends.reduce((best, end, k) => (Math.abs(end - value) < Math.abs(ends[best] - value) ? k : best), 0)];
    return value.toFixed(places).replace("-", "−");
  };
  const scores = (item, m) => outputs(item).map((o) => ({ o, m, value: data.measures[m].values[o.place] })).filter((s) => typeof s.value === "number");
  const mean = (o) => { // of the criteria, as in the order that the page comes in; 0 if one is missing
    const shares = leads.map((m) => [m, data.measures[m].values[o.place]]).filter(([, value]) => typeof value === "number").map(([m, value]) => share(m, value));
    return shares.length === leads.length ? shares.reduce((a, b) => a + b, 0) / shares.length : 0;
  };
  const lowest = (item) => {
    const all = measures().flatMap((m) => scores(item, m).map((s) => ({ ...s, by: share(m, s.value), mean: mean(s.o) })));
    const low = all.reduce((a, b) => ((b.by - a.by || b.mean - a.mean) < 0 ? b : a), all[0]);
    if (!low) return null;
    const { better, item: whole, name } = data.measures[low.m];
    return { by: low.by, text: shown(low.m, low.value), shade: better ? 2 * low.by - 1 : null, who: whole || data.systems.length < 2 ? "" : data.systems[data.system[low.o.place]], name };
  };
  const spread = (item) => measures().map((m) => {
    const all = scores(item, m).map((s) => s.value), by = all.length > 1 ? Math.max(...all) - Math.min(...all) : 0;
    return { by: -Math.abs(share(m, by) - share(m, 0)), text: "Δ\u00a0" + by.toFixed(data.measures[m].places), shade: null, who: "", name: data.measures[m].name };
  }).reduce((a, b) => (b.by < a.by ? b : a), { by: 0, text: "–", shade: null, who: "", name: "" });
  const hasFailed = (item) => {
    if (chosen(system) < 0 && chosen(column) < 0) return data.failed[item.place] > 0;
    const of = chosen(column) < 0 ? [...data.measures.keys()] : measures();
    return outputs(item).some((o) => of.some((m) => data.measures[m].values[o.place] === false));
  };

  // Words that are searched for, copied or different are marked without touching the texts.
  const marks = globalThis.Highlight && CSS.highlights ? { copied: new Highlight(), changed: new Highlight(), match: new Highlight() } : null;
  if (marks) Object.entries(marks).forEach(([name, mark], k) => { CSS.highlights.set(name, mark); mark.priority = k; });
  const range = (node, start, end, last = node) => { const r = new Range(); r.setStart(node, start); r.setEnd(last, end); return r; };
  const text = (item) => item.text ??= fold([...item.el.querySelectorAll(".name, .sides, .contest")].map((el) => el.textContent).join("\n"));
  const hits = (item) => words.reduce((n, word) => n + text(item).split(word).length - 1, 0);
  const markMatches = (item) => {
    const skip = (node) => (node.parentElement.closest(".peek, .chip, .from") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const walk = document.createTreeWalker(item.el, NodeFilter.SHOW_TEXT, skip);
    for (let node; (node = walk.nextNode());) {
      const plain = node.data.toLowerCase();
      if (plain.length !== node.length) continue;
      for (const word of words) {
        for (let at = plain.indexOf(word); at >= 0; at = plain.indexOf(word, at + word.length)) {
          marks.match.add(range(node, at, at + word.length));
          node.parentElement.closest("details:not(.item)")?.setAttribute("open", "");
        }
      }
    }
  };
  const segmenter = globalThis.Intl?.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;
  const split = (el) => {
    if (!el || !segmenter) return [];
    const nodes = [...el.childNodes].map((child) => child.firstChild ?? child); // a quoted sentence is in a <mark>
    return nodes.flatMap((node) => [...segmenter.segment(node.data ?? "")].filter((s) => s.isWordLike).map((s) => ({ word: s.segment.toLowerCase(), node, start: s.index, end: s.index + s.segment.length })));
  };
  // Marks the words of two texts that are not in their longest common subsequence.
  const markChanges = (a, b) => {
    const n = a.length, m = b.length;
    if ((n + 1) * (m + 1) > 4e6) return;
    const best = new Uint16Array((n + 1) * (m + 1)), at = (i, j) => i * (m + 1) + j;
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) best[at(i, j)] = a[i].word === b[j].word ? best[at(i + 1, j + 1)] + 1 : Math.max(best[at(i + 1, j)], best[at(i, j + 1)]);
    }
    const add = (w) => marks.changed.add(range(w.node, w.start, w.end));
    for (let i = 0, j = 0; i < n || j < m;) {
      if (i < n && j < m && a[i].word === b[j].word) { i++; j++; }
      else if (j >= m || (i < n && best[at(i + 1, j)] >= best[at(i, j + 1)])) add(a[i++]);
      else add(b[j++]);
    }
  };
  // Marks the longest runs of at least three words that a text shares with its source, from left to right.
  const markCopies = (mine, theirs) => {
    const starts = new Map(), three = (all, k) => all.slice(k, k + 3).map((w) => w.word).join(" ");
    for (let k = 0; k + 3 <= theirs.length; k++) starts.set(three(theirs, k), [...(starts.get(three(theirs, k)) ?? []), k]);
    for (let i = 0; i + 3 <= mine.length;) {
      let size = 0, where = 0;
      for (const k of (starts.get(three(mine, i)) ?? []).slice(0, 50)) {
        let same = 3;
        while (i + same < mine.length && k + same < theirs.length && mine[i + same].word === theirs[k + same].word) same++;
        if (same > size) [size, where] = [same, k];
      }
      for (const [all, k] of size ? [[mine, i], [theirs, where]] : []) marks.copied.add(range(all[k].node, all[k].start, all[k + size - 1].end, all[k + size - 1].node));
      i += size || 1;
    }
  };
  const outputText = (o) => o.el.querySelector(":scope > .text");
  const sourceText = (o) => { // the output's own source, or the item's
    const where = ".given-text.source";
    return o.el.querySelector(where) ?? o.el.closest(".item").querySelector(".given " + where);
  };
  const mark = () => {
    if (!marks) return;
    for (const name in marks) marks[name].clear();
    for (const item of items) {
      if (!item.el.open || item.el.hidden) continue;
      if (words.length) markMatches(item);
      const of = outputs(item);
      if (chosen(system) >= 0 && chosen(versus) >= 0 && of.length === 2) markChanges(...of.map((o) => split(outputText(o))));
      if (copied?.checked) for (const o of of) markCopies(split(outputText(o)), split(sourceText(o)));
    }
  };

  const paint = (item) => { // the chip of the closed row, and which systems and scores the item shows
    const [chip, from] = item.el.firstElementChild.children, key = item.key;
    chip.textContent = key?.text ?? "–";
    chip.className = "chip" + (typeof key?.shade === "number" ? (key.shade >= 0 ? " heat-good" : " heat-bad") : "");
    chip.style.setProperty("--shade", Math.abs(key?.shade ?? 0));
    from.replaceChildren(...[key?.who, " ", key?.name].map((text) => (text === " " ? text : Object.assign(document.createElement("bdi"), { textContent: text ?? "" }))));
    const kept = new Set(outputs(item));
    for (const o of item.outputs) o.el.hidden = !kept.has(o);
    item.el.classList.toggle("versus", chosen(system) >= 0 && chosen(versus) >= 0);
  };
  const update = () => {
    words = [...new Set([...fold(q.value).matchAll(/"([^"]+)"?|[^\s"]+/g)].map((m) => (m[1] ?? m[0]).trim()))].filter(Boolean);
    const usual = chosen(column) < 0 || data.measures[chosen(column)].better;
    order.options[0].text = usual ? "worst first" : "lowest first";
    order.options[1].text = usual ? "best first" : "highest first";
    const plain = !order.value && [system, versus, column, ...facets].every((select) => chosen(select) < 0);
    for (const item of items) item.key = order.value === "spread" ? spread(item) : lowest(item);
    const kept = items.filter((item) => outputs(item).length && words.every((word) => text(item).includes(word)) && (!failed?.checked || hasFailed(item)));
    const shownItems = new Set(kept), falls = order.value === "high" ? -1 : 1;
    for (const item of items) { item.el.hidden = !shownItems.has(item); paint(item); }
    const sorted = [...items].sort((a, b) => {
      if (plain) return a.place - b.place;
      if (order.value === "name") return a.name.localeCompare(b.name, undefined, { numeric: true });
      return !a.key - !b.key || (a.key && falls * (a.key.by - b.key.by)) || a.place - b.place;
    });
    if (sorted.some((item, k) => list.children[k] !== item.el)) list.append(...sorted.map((item) => item.el));
    const all = counted(items.length, "item"), some = kept.length < items.length || words.length ? kept.length.toLocaleString("en") + " of " + all : all;
    byId("count").textContent = words.length ? some + ", " + counted(kept.reduce((n, item) => n + hits(item), 0), "hit") : some;
    mark();
  };

  // The state is the link: #items?system=…&versus=…&column=…&facet-0=…&order=…&q=…&item=…
  const names = new Map([[system, data.systems], [versus, data.systems], [column, data.measures.map((m) => m.column)], ...facets.map((select, k) => [select, data.facets[k].values])]);
  let last = null; // the item that was opened last
  const save = () => {
    const state = new URLSearchParams();
    for (const [select, all] of names) if (chosen(select) >= 0) state.set(select.id, all[chosen(select)]);
    if (order.value) state.set("order", order.value);
    if (q.value) state.set("q", q.value);
    for (const box of [failed, copied]) if (box?.checked) state.set(box.id, "1");
    if (last?.el.open) state.set("item", last.name);
    try { history.replaceState(null, "", "#items" + (state.size ? "?" + state : "")); } catch { /* a frame without history */ }
  };
  const load = () => {
    if (!/^#items(\?|$)/.test(location.hash)) return;
    const state = new URLSearchParams(location.hash.slice(7));
    for (const [select, all] of names) if (select) select.selectedIndex = 1 + all.indexOf(state.get(select.id));
    order.value = [...order.options].some((option) => option.value === state.get("order")) ? state.get("order") : "";
    q.value = state.get("q") ?? "";
    for (const box of [failed, copied]) if (box) box.checked = state.has(box.id);
    const item = items.find((one) => one.name === state.get("item"));
    last = item ?? null;
    if (item) item.el.open = true;
    update();
    if (item) item.el.firstElementChild.focus({ preventScroll: true });
    (item && !item.el.hidden ? item.el : byId("list").closest("section") ?? list).scrollIntoView({ block: "start", behavior: "instant" });
  };
  const change = () => { update(); save(); };
  list.addEventListener("toggle", (event) => {
    const item = itemOf.get(event.target);
    if (!item) return;
    if (item.el.open) last = item;
    mark();
    if (item === last) save();
  }, true);
  addEventListener("hashchange", load);
  document.addEventListener("click", (event) => { // a link to the state that the page is in
    if (event.target.closest?.("a[href^='#items']")?.hash === location.hash) load();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target === q && event.key === "Escape" && !q.value) return q.blur();
    if (event.target.closest?.('input[type="search"], select, textarea')) return;
    const at = event.target.closest?.(".item"), onName = at && event.target.closest("summary") === at.firstElementChild;
    const step = { j: 1, k: -1 }[event.key] ?? (onName ? { ArrowDown: 1, ArrowUp: -1 }[event.key] : 0);
    const go = (el) => { el.firstElementChild.focus({ preventScroll: true }); el.scrollIntoView({ block: "nearest", behavior: "instant" }); };
    if (event.key === "/") { q.focus(); q.select(); }
    else if (event.key === "Escape" && at?.open) { at.open = false; go(at); }
    else if (step) {
      const rows = [...list.children].filter((el) => !el.hidden), next = at ? rows.indexOf(at) + step : step > 0 ? 0 : rows.length - 1;
      if (rows[next]) go(rows[next]);
    } else return;
    event.preventDefault();
  });
  q.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(change, 80); });
  versus?.addEventListener("change", () => { // with all systems: compare with the first of the others
    if (chosen(versus) >= 0 && chosen(system) < 0) system.selectedIndex = chosen(versus) === 0 ? 2 : 1;
  });
  for (const control of [system, versus, column, ...facets, order, failed, copied]) control?.addEventListener("change", change);
  document.querySelector(".controls").hidden = false;
  byId("count").textContent = counted(items.length, "item");
  addEventListener("load", () => setTimeout(() => { // after the browser has restored the controls
    if (location.hash.startsWith("#items")) load();
    else if (q.value || order.value || failed?.checked || copied?.checked || [system, versus, column, ...facets].some((select) => chosen(select) >= 0)) update();
  }));
}
