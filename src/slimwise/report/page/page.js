"use strict";
// Tables sort by a click on a heading; a click on a number opens the records that it came from.

const numberIn = (text) => Number.parseFloat(text.replaceAll("\u2212", "-").replaceAll(",", ""));

function compare(one, other, isNumber) {
  if (one === "" || other === "") return (one === "") - (other === "");
  return isNumber ? numberIn(one) - numberIn(other) : one.localeCompare(other, "en", { numeric: true });
}

function sortBy(table, heading) {
  const next = { ascending: "descending", descending: "none" }[heading.ariaSort] ?? "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  if (next !== "none") heading.ariaSort = next;
  const sign = { ascending: 1, descending: -1, none: 0 }[next];
  const text = (row) => row.cells[heading.cellIndex].textContent.trim();
  const isNumber = heading.classList.contains("number");
  const rows = [...table.tBodies[0].rows].sort(
    (one, other) => sign * compare(text(one), text(other), isNumber) || one.dataset.place - other.dataset.place,
  );
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table")) {
  for (const [place, row] of [...table.tBodies[0].rows].entries()) row.dataset.place = place;
  for (const heading of table.tHead.rows[0].cells) {
    heading.firstElementChild.addEventListener("click", () => sortBy(table, heading));
  }
}

document.querySelector("main").addEventListener("click", (event) => {
  const cell = event.target.closest("[data-origin] > *");
  if (!cell || event.target.closest("a") || !getSelection().isCollapsed) return;
  const origin = document.getElementById(cell.parentElement.dataset.origin);
  const heading = cell.closest("table").tHead.rows[0].cells[cell.cellIndex].textContent;
  const caption = cell.closest("table").caption?.textContent;
  const isValue = cell.localName === "td";
  origin.querySelector(".cell").textContent = isValue
    ? [caption, heading, cell.textContent].filter(Boolean).join(", ")
    : "";
  if (!event.target.closest("button")) origin.showPopover();
});
