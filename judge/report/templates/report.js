"use strict";
(() => {
  const list = document.getElementById("list"), items = [...list.children];
  const find = document.getElementById("find"), order = document.getElementById("order");
  const failed = document.getElementById("failed"), found = document.getElementById("found");
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const key = (item, k) => { const v = parseFloat(item.dataset.keys.split(" ")[k]); return isNaN(v) ? Infinity : v; };
  const counted = (n, what) => n.toLocaleString("en") + " " + what + (n === 1 ? "" : "s");
  let words = [], timer;

  // The name and all that opens below it: the summary's excerpt of the source would count twice.
  const text = (item) => item.text ??= fold([item.querySelector("b"), ...[...item.children].slice(1)].map((e) => e.textContent).join("\n"));
  const hits = (item) => words.reduce((n, word) => n + text(item).split(word).length - 1, 0);

  const marks = globalThis.Highlight && CSS.highlights ? new Highlight() : null;
  if (marks) CSS.highlights.set("found", marks);
  const mark = (item) => {
    const walk = document.createTreeWalker(item, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode());) {
      const plain = node.data.toLowerCase();
      if (plain.length !== node.length) continue;
      for (const word of words) {
        for (let at = plain.indexOf(word), hit = false; at >= 0; at = plain.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          marks.add(range);
          if (!hit) { node.parentElement.closest("details:not(.item)")?.setAttribute("open", ""); hit = true; }
        }
      }
    }
  };
  const markOpen = () => {
    if (!marks) return;
    marks.clear();
    if (words.length) for (const item of items) if (item.open && !item.hidden) mark(item);
  };

  const show = () => {
    words = [...new Set([...fold(find.value).matchAll(/"([^"]+)"?|[^\s"]+/g)].map((m) => (m[1] ?? m[0]).trim()))].filter(Boolean);
    let n = 0, all = 0;
    for (const item of items) {
      item.hidden = !words.every((word) => text(item).includes(word)) || (failed?.checked && !("failed" in item.dataset));
      if (!item.hidden) { n += 1; all += hits(item); }
    }
    const of = n === items.length && !words.length ? "" : n.toLocaleString("en") + " of " + counted(items.length, "item");
    found.textContent = words.length ? of + ", " + counted(all, "hit") : of;
    markOpen();
  };
  const sort = () => {
    const k = order.value, by = (a, b) => { const x = key(a, k), y = key(b, k); return x === y ? 0 : x < y ? -1 : 1; };
    list.append(...(k === "" ? items : [...items].sort(by)));
  };
  find.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(show, 80); });
  failed?.addEventListener("change", show);
  order.addEventListener("change", sort);
  list.addEventListener("toggle", (event) => { if (words.length && event.target.matches(".item")) markOpen(); }, true);
  document.querySelector(".controls").hidden = false;
  if (find.value || failed?.checked) show(); // what a browser has kept from before
})();
