// Page behavior: re-rank when a weight changes, poll jobs, draw interactive charts.
"use strict";
document.documentElement.classList.add("scripted");

// a page that waits for a computation loads again
if (document.body.dataset.refresh) setTimeout(() => location.reload(), 1000 * document.body.dataset.refresh);

const statusLine = document.getElementById("status");

function addCell(row, text, name) {
  const cell = row.insertCell();
  cell.textContent = text;
  if (name) cell.className = name;
  return cell;
}

// the small print of an item: its id, or the start of its text
function addNote(cell, note) {
  if (note) cell.append(Object.assign(document.createElement("span"), { className: "about", textContent: note }));
}

// -- weights ---------------------------------------------------------------------------------------------------
const form = document.getElementById("why");
const sliders = form ? [...form.querySelectorAll("input[type=range]")] : [];
let timer = 0;
let latestRequest = 0;

function readState() {
  const state = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "" && !(name.startsWith("w:") && Number(value) === 1)) state.append(name, value);
  }
  return state;
}

function showRanking(ranking) {
  const body = document.querySelector("#places tbody");
  const here = form.elements.namedItem("item").value;
  body.replaceChildren();
  for (const r of ranking.rows) {
    const row = body.insertRow();
    if (String(r.item) === here) row.classList.add("here");
    if (r.before > r.rank) row.classList.add("up");
    if (r.before < r.rank) row.classList.add("down");
    addCell(row, r.rank, "right");
    const link = document.createElement("a");
    link.href = r.why;
    link.textContent = r.name;
    const item = addCell(row, "");
    item.append(link);
    addNote(item, r.note);
    addCell(row, r.score === null ? "" : r.score.toFixed(4), "right");
    addCell(row, r.label === null ? "" : r.label, "right");
    addCell(row, r.before === r.rank ? "" : r.before, "right");
  }
  statusLine.textContent = ranking.text;
}

async function rerank() {
  const number = ++latestRequest;
  const where = readState();
  try {
    const answer = await fetch(`${form.dataset.rank}?${where}`);
    const ranking = await answer.json();
    if (number !== latestRequest) return;
    if (ranking.detail) { statusLine.textContent = ranking.detail; return; }
    showRanking(ranking);
    document.getElementById("old").hidden = false;
    history.replaceState(null, "", `?${where}`);
    for (const link of document.querySelectorAll("a[data-export]")) link.search = where;
    for (const link of document.querySelectorAll("a[data-code]")) link.search = `view=why&${where}`;
  } catch {
    if (number === latestRequest) statusLine.textContent = "The server does not respond; the ranking is unchanged.";
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
    location.search = readState();
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

async function pollJobs() {
  let running = true;
  try {
    const answer = await (await fetch(table.dataset.poll)).json();
    for (const job of answer.jobs) {
      const row = table.querySelector(`tr[data-job="${job.job}"]`);
      if (!row) continue;
      row.querySelector(".state").textContent = job.state;
      row.querySelector(".words").textContent = job.words;
      row.querySelector("progress").value = job.share;
      row.querySelector(".left-time").textContent = job.left;
    }
    running = answer.running;
  } catch { /* the server may be restarting */ }
  if (running) setTimeout(pollJobs, 1000);
  else location.reload();
}
if (table) setTimeout(pollJobs, 700);

// -- charts ----------------------------------------------------------------------------------------------------
const darkPage = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (darkPage.matches ? "dark" : "light")) === "dark";

for (const button of document.querySelectorAll("button[data-plot]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    const holder = button.closest("figure").querySelector(".picture");
    const look = `&theme=${isDark() ? "dark" : "light"}&width=${holder.clientWidth}`;
    const [, answer] = await Promise.all([import("./plots.js"), fetch(button.dataset.plot + look)]);
    const chart = document.createElement("div");
    await window.vegaEmbed(chart, await answer.json(), {
      actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true },
    });
    holder.replaceChildren(chart);
    button.remove();
  });
}

// a busy server may refuse a picture for a moment: it is asked for again, at most five times
for (const image of document.querySelectorAll(".picture img")) {
  let tries = 0;
  const retry = () => {
    if (++tries > 5) return;
    setTimeout(() => {
      // one that has come meanwhile must not vanish while it is loaded again
      if (image.complete && image.naturalWidth === 0) image.src = image.getAttribute("src");
    }, 2000 * tries);
  };
  image.addEventListener("error", retry);
  if (image.complete && image.naturalWidth === 0) retry();
}

// -- theme -----------------------------------------------------------------------------------------------------
// the sources of a picture follow the system; a chosen theme replaces that condition
function showThemedPictures() {
  const chosen = document.documentElement.dataset.theme;
  for (const source of document.querySelectorAll("picture source")) {
    source.dataset.media ??= source.media;
    const condition = { dark: "(min-width: 0)", light: "(max-width: 0)" }[chosen];
    if (condition) source.media = source.dataset.media.replace("(prefers-color-scheme: dark)", condition);
    else source.media = source.dataset.media;
  }
}

const themeButton = document.getElementById("theme");
if (themeButton) {
  const next = { "": "light", light: "dark", dark: "" };
  const show = () => {
    const chosen = document.documentElement.dataset.theme || "";
    themeButton.textContent = `Theme: ${chosen || "system"}`;
    showThemedPictures();
  };
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    const chosen = next[document.documentElement.dataset.theme || ""];
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    try { localStorage.setItem("podium-theme", chosen); } catch { /* storage may be disabled */ }
    show();
  });
  show();
}

// -- toasts ----------------------------------------------------------------------------------------------------
const toasts = document.getElementById("toasts");

function showToast(text) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.append(Object.assign(document.createElement("p"), { textContent: text }));
  toasts.append(toast);
  setTimeout(() => toast.remove(), 6000);
}
// a message with a way to undo stays until the next page
for (const toast of toasts ? toasts.querySelectorAll(".toast:not(:has(form))") : []) setTimeout(() => toast.remove(), 6000);
if (toasts && toasts.children.length) {
  // a reload must not repeat the message
  const state = new URLSearchParams(location.search);
  for (const name of ["done", "removed"]) state.delete(name);
  history.replaceState(null, "", location.pathname + (state.size ? `?${state}` : "") + location.hash);
}
// the menu of projects closes when the reader turns elsewhere
const switcher = document.querySelector(".switcher");
document.addEventListener("click", (event) => {
  if (switcher && switcher.open && !switcher.contains(event.target)) switcher.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && switcher && switcher.open) {
    switcher.open = false;
    switcher.querySelector("summary").focus();
  }
});

// on a phone the pages of a goal scroll sideways: the one in view comes into sight
const here = document.querySelector(".goals [aria-current]");
const strip = here && here.closest("ul");
if (strip && strip.scrollWidth > strip.clientWidth) {
  strip.scrollLeft = here.offsetLeft - strip.offsetLeft - (strip.clientWidth - here.offsetWidth) / 2;
}

// -- copying ---------------------------------------------------------------------------------------------------
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      showToast("Copied.");
    } catch {
      // without a secure connection a page may not write to the clipboard
      getSelection().selectAllChildren(source);
      showToast("Selected; press Ctrl+C to copy it.");
    }
  });
}
