"use strict";
for (const choice of document.querySelectorAll("select[data-of]")) {
  const parts = [...document.getElementById(choice.dataset.of).children];
  const show = () => parts.forEach((part, place) => { part.hidden = place !== choice.selectedIndex; });
  for (const part of parts) part.querySelector("h3").hidden = true;  // the choice says it
  choice.parentElement.hidden = false;
  choice.addEventListener("change", show);
  show();
}
