// The buttons, the sortable tables, and the section that the navigation marks.
"use strict";
const byId = (id) => document.getElementById(id);
{
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = (theme) => { if (theme) root.dataset.theme = theme; };
  try { paint(localStorage.getItem("judge-theme")); } catch { /* a frame without storage */ }
  byId("theme").addEventListener("click", () => {
    paint((root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
    try { localStorage.setItem("judge-theme", root.dataset.theme); } catch { /* a frame without storage */ }
  });
  byId("print").addEventListener("click", () => print());
  byId("copy").addEventListener("click", async ({ currentTarget: button }) => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy link"; }, 1500);
    } catch { prompt("Link to this view", location.href); }
  });
  for (const el of document.querySelectorAll(".tools button, .hint")) el.hidden = false;

  // A click on a heading sorts its column; a second click reverses it. Cells without a number stay last.
  const key = (row, k) => {
    const cell = row.cells[k], value = cell.dataset.value ?? parseFloat(cell.textContent.replace("−", "-"));
    return { number: value === "" || Number.isNaN(+value) ? null : +value, text: cell.textContent };
  };
  for (const table of document.querySelectorAll("table.sorts")) {
    for (const head of table.querySelectorAll("th[data-k]")) {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const k = +head.dataset.k, rows = [...table.tBodies[0].rows], keys = new Map(rows.map((row) => [row, key(row, k)]));
        const numeric = head.classList.contains("num"), was = head.ariaSort;
        const falls = was ? was === "ascending" : numeric && !head.querySelector('[title^="lower"]');
        for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
        head.ariaSort = falls ? "descending" : "ascending";
        rows.sort((a, b) => {
          const one = keys.get(a), two = keys.get(b);
          if (!numeric) return (falls ? -1 : 1) * one.text.localeCompare(two.text, undefined, { numeric: true });
          return (one.number === null) - (two.number === null) || (falls ? two.number - one.number : one.number - two.number);
        });
        table.tBodies[0].append(...rows);
      });
    }
  }

  // The link of the section at the top of the window is marked.
  const links = [...document.querySelectorAll("nav a")];
  const places = links.map((a) => byId(decodeURIComponent(a.hash.slice(1))));
  let waiting = false;
  const follow = () => {
    waiting = false;
    const passed = places.filter((el) => el && el.getBoundingClientRect().top < 120).length;
    links.forEach((a, k) => (k === Math.max(passed, 1) - 1 ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current")));
  };
  addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(follow); } }, { passive: true });
  if (links.length) follow();
}
