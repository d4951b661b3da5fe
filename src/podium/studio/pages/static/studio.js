// Page behavior: re-rank when a weight changes, poll jobs, draw interactive charts.
"use strict";
document.documentElement.classList.add("scripted");

const said = document.getElementById("told");

function cell(row, text, name) {
  const made = row.insertCell();
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

// -- weights ---------------------------------------------------------------------------------------------------
const form = document.getElementById("why");
const sliders = form ? [...form.querySelectorAll("input[type=range]")] : [];
let timer = 0;
let asked = 0;

function state() {
  const found = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "" && !(name.startsWith("w:") && Number(value) === 1)) found.append(name, value);
  }
  return found;
}

function ranked(found) {
  const body = document.querySelector("#places tbody");
  const here = form.elements.namedItem("item").value;
  body.replaceChildren();
  for (const r of found.rows) {
    const row = body.insertRow();
    if (String(r.item) === here) row.classList.add("here");
    if (r.before > r.rank) row.classList.add("up");
    if (r.before < r.rank) row.classList.add("down");
    cell(row, r.rank, "right");
    const link = document.createElement("a");
    link.href = r.why;
    link.textContent = r.item;
    cell(row, "").append(link);
    cell(row, r.score === null ? "" : r.score.toFixed(4), "right");
    cell(row, r.label === null ? "" : r.label, "right");
    cell(row, r.before === r.rank ? "" : r.before, "right");
  }
  said.textContent = found.text;
}

async function rerank() {
  const number = ++asked;
  const where = state();
  try {
    const answer = await fetch(`${form.dataset.rank}?${where}`);
    const found = await answer.json();
    if (number !== asked) return;
    if (found.error) { said.textContent = found.error.message; return; }
    ranked(found);
    document.getElementById("old").hidden = false;
    history.replaceState(null, "", `?${where}`);
    for (const link of document.querySelectorAll("a[data-export]")) link.search = where;
  } catch {
    if (number === asked) said.textContent = "The server does not respond; the ranking is unchanged.";
  }
}

for (const slider of sliders) {
  slider.addEventListener("input", () => {
    slider.nextElementSibling.textContent = slider.value;
    clearTimeout(timer);
    timer = setTimeout(rerank, 120);
  });
}
if (form) {
  form.addEventListener("submit", (event) => {  // omit weights of 1 from the URL
    event.preventDefault();
    location.search = state();
  });
  const reset = document.getElementById("reset");
  if (reset) {
    reset.hidden = false;
    reset.addEventListener("click", () => {
      for (const slider of sliders) {
        slider.value = 1;
        slider.nextElementSibling.textContent = "1";
      }
      rerank();
    });
  }
}

// -- jobs ------------------------------------------------------------------------------------------------------
const table = document.querySelector("table[data-poll]");

async function watch() {
  let running = true;
  try {
    const found = await (await fetch(table.dataset.poll)).json();
    for (const job of found.jobs) {
      const row = table.querySelector(`tr[data-job="${job.job}"]`);
      if (!row) continue;
      row.querySelector(".state").textContent = job.state;
      row.querySelector(".words").textContent = job.words;
      row.querySelector("progress").value = job.share;
    }
    running = found.running;
  } catch { /* the server may be restarting */ }
  if (running) setTimeout(watch, 1000);
  else location.reload();
}
if (table) setTimeout(watch, 700);

// -- pictures --------------------------------------------------------------------------------------------------
for (const button of document.querySelectorAll("button[data-plot]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    const [, answer] = await Promise.all([import("/static/plots.js"), fetch(button.dataset.plot)]);
    const holder = button.closest("figure").querySelector(".picture");
    const drawn = document.createElement("div");
    await window.vegaEmbed(drawn, await answer.json(), {
      actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true },
    });
    holder.replaceChildren(drawn);
    button.remove();
  });
}
