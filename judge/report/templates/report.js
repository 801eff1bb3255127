"use strict";
(() => {
  const list = document.getElementById("list"), items = [...list.children];
  const find = document.getElementById("find"), order = document.getElementById("order");
  const failed = document.getElementById("failed"), found = document.getElementById("found");
  const low = (item, k) => { const v = parseFloat(item.dataset.lows.split(" ")[k]); return isNaN(v) ? Infinity : v; };
  const show = () => {
    const words = find.value.toLowerCase();
    let n = 0;
    for (const item of items) {
      item.text ??= item.textContent.toLowerCase();
      item.hidden = !item.text.includes(words) || (failed?.checked && !("failed" in item.dataset));
      n += !item.hidden;
    }
    found.textContent = n === items.length ? "" : n + " of " + items.length + " items";
  };
  const sort = () => {
    const k = order.value, by = (a, b) => { const x = low(a, k), y = low(b, k); return x === y ? 0 : x < y ? -1 : 1; };
    list.append(...(k === "" ? items : [...items].sort(by)));
  };
  find.addEventListener("input", show);
  failed?.addEventListener("change", show);
  order.addEventListener("change", sort);
  document.querySelector(".controls").hidden = false;
})();
