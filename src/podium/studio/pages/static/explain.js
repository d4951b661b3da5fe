// A beside B: weights are measured on all judged queries while they move.
"use strict";

const explainForm = document.getElementById("explain");
const weightSliders = explainForm ? [...explainForm.querySelectorAll("input[type=range]")] : [];
let effectTimer = 0;
let newestEffect = 0;

function readWeights() {
  const state = new URLSearchParams();
  for (const [name, value] of new FormData(explainForm)) {
    if (value !== "" && !(name.startsWith("w:") && Number(value) === 1)) state.append(name, value);
  }
  return state;
}

function showPairRanking(rows) {
  const body = document.querySelector("#pair-ranking tbody");
  const isLabeled = "labeled" in body.parentNode.dataset;
  body.replaceChildren();
  for (const r of rows) {
    const row = body.insertRow();
    if (r.is_a || r.is_b) row.className = "here";
    const cells = [[r.rank, "right"], [r.name, "wrap"], [r.before === r.rank ? "" : r.before, "right"]];
    if (isLabeled) cells.splice(2, 0, [r.label ?? "", "right"]);
    for (const [text, name] of cells) {
      const cell = row.insertCell();
      cell.textContent = text;
      cell.className = name;
      if (name === "wrap") addNote(cell, r.note);
    }
    const links = row.insertCell();
    links.className = "letters";
    for (const [letter, href] of [["A", r.as_a], ["B", r.as_b]]) {
      const link = document.createElement("a");
      link.href = href;
      link.textContent = letter;
      link.setAttribute("aria-label", `${r.name} as ${letter}`);
      links.append(link, " ");
    }
  }
}

async function measureWeights() {
  const number = ++newestEffect;
  const state = readWeights();
  const words = document.getElementById("effect");
  try {
    const effect = await (await fetch(`${explainForm.dataset.effect}?${state}`)).json();
    if (number !== newestEffect) return;
    if (effect.status) { words.textContent = effect.detail; return; }
    words.textContent = effect.text;
    if (effect.now !== null) document.getElementById("effect-now").textContent = effect.now.toFixed(4);
    showPairRanking(effect.ranking);
    history.replaceState(null, "", `?${state}`);
    for (const link of document.querySelectorAll("a[data-export]")) link.search = state;
    for (const link of document.querySelectorAll("a[data-code]")) link.search = `view=explain&${state}`;
  } catch {
    if (number === newestEffect) words.textContent = "The server does not respond; the figures are those of other weights.";
  }
}

for (const slider of weightSliders) {
  slider.addEventListener("input", () => {
    slider.nextElementSibling.textContent = slider.value;
    clearTimeout(effectTimer);
    effectTimer = setTimeout(measureWeights, 150);
  });
}
const resetWeights = document.getElementById("reset-weights");
if (resetWeights) {
  resetWeights.hidden = false;
  resetWeights.addEventListener("click", () => {
    for (const slider of weightSliders) {
      slider.value = 1;
      slider.nextElementSibling.textContent = "1";
    }
    measureWeights();
  });
}
const keepForm = document.getElementById("keep");
if (keepForm) {
  keepForm.addEventListener("submit", () => {
    for (const old of keepForm.querySelectorAll("input[name^='w:']")) old.remove();
    for (const slider of weightSliders) {
      if (Number(slider.value) === 1) continue;
      const field = Object.assign(document.createElement("input"), { type: "hidden", name: slider.name, value: slider.value });
      keepForm.append(field);
    }
  });
}
if (explainForm) {
  // another query, method or metric is shown at once; its items are its own
  for (const choice of explainForm.querySelectorAll("select")) {
    choice.addEventListener("change", () => {
      const state = readWeights();
      if (choice.name === "q") for (const name of ["item", "over"]) state.delete(name);
      location.search = state;
    });
  }
  explainForm.addEventListener("submit", (event) => {
    event.preventDefault();
    location.search = readWeights();
  });
}
