// Tables of thousands of rows: only the rows in view are in the page.
"use strict";

function buildRow(cells, notes, link, sides) {
  const row = document.createElement("tr");
  cells.forEach((text, column) => {
    const cell = row.insertCell();
    cell.className = sides[column];
    if (column === 0 && link) {
      const anchor = document.createElement("a");
      anchor.href = link;
      anchor.textContent = text;
      cell.append(anchor);
    } else cell.textContent = text;
    addNote(cell, notes[column]);
  });
  return row;
}

function buildSpace(columns) {
  const row = document.createElement("tr");
  const cell = row.insertCell();
  cell.colSpan = columns;
  cell.className = "space";
  row.setAttribute("aria-hidden", "true");
  return row;
}

function scrollRows(box, answer) {
  const body = box.querySelector("tbody");
  const height = body.rows[0].getBoundingClientRect().height;
  const [above, below] = [buildSpace(answer.sides.length), buildSpace(answer.sides.length)];
  box.dataset.all = "";
  let first = -1;
  const draw = () => {
    const start = Math.max(0, Math.floor(box.scrollTop / height) - 20);
    if (start === first) return;
    first = start;
    const count = Math.ceil(box.clientHeight / height) + 40;
    const end = Math.min(start + count, answer.rows.length);
    above.firstChild.height = start * height;
    below.firstChild.height = (answer.rows.length - end) * height;
    const shown = answer.rows.slice(start, end).map((cells, n) => buildRow(cells, answer.notes[start + n], answer.links[start + n], answer.sides));
    body.replaceChildren(above, ...shown, below);
  };
  box.querySelector("table").setAttribute("aria-rowcount", answer.rows.length);
  box.addEventListener("scroll", () => requestAnimationFrame(draw));
  draw();
}

for (const button of document.querySelectorAll("button[data-all]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    const name = button.dataset.all;
    try {
      const answer = await fetch(`${location.pathname}/${name}.rows${location.search}`);
      scrollRows(document.querySelector(`[data-rows="${name}"]`), await answer.json());
      button.closest("nav").replaceChildren("All rows are shown");
    } catch {
      button.disabled = false;
    }
  });
}
