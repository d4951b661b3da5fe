// Voting: answers by key or click, sent again until the server has stored them; boards that follow the votes.
"use strict";

// -- voting ----------------------------------------------------------------------------------------------------
const vote = document.querySelector("[data-vote]");

function startVoting() {
  const base = vote.dataset.vote;
  const answers = document.getElementById("answers");
  const undo = document.getElementById("undo");
  const takeBack = document.getElementById("take-back");
  const status = document.getElementById("status");
  const keys = document.getElementById("keys");
  const waitingVote = `podium-vote:${base}`;
  let shown = performance.now();
  let busy = false;
  document.getElementById("keys-choice").hidden = false;

  function say(text, waiting) {
    status.textContent = text;
    status.classList.toggle("waiting", Boolean(waiting));
  }

  function showItem(side, item) {
    const card = answers.querySelector(`[data-side="${side}"]`);
    if (!card || !item) return;
    card.classList.remove("chosen");
    card.querySelector("h2").textContent = item.title;
    const body = card.querySelector(".body");
    body.textContent = item.body;
    body.scrollTop = 0;
    const source = card.querySelector(".source");
    source.hidden = !/^https?:\/\//.test(item.url);
    source.querySelector("a").href = source.hidden ? "#" : item.url;
  }

  function showQuestion(asked) {
    document.getElementById("own-votes").textContent = asked.own_votes;
    document.getElementById("all-votes").textContent = asked.all_votes;
    takeBack.disabled = asked.own_votes === 0;
    const done = document.getElementById("done");
    done.textContent = asked.done;
    done.hidden = !asked.done;
    answers.hidden = Boolean(asked.done);
    document.getElementById("skip").hidden = answers.hidden;
    answers.elements.namedItem("key").value = asked.key || "";
    showItem("first", asked.first);
    showItem("second", asked.second);
    shown = performance.now();
  }

  // send until the server answers: a vote has a key, so one that arrives twice is stored once
  async function send(where, fields) {
    for (let pause = 400; ; pause = Math.min(pause * 1.6, 5000)) {
      try {
        const answer = await fetch(base + where, {
          method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(fields),
        });
        if (answer.status < 500 && answer.status !== 429) {
          const document_ = await answer.json();
          if (answer.ok) return document_;
          say(document_.detail || "The server refused this.", true);
          return null;
        }
      } catch { /* no connection: the server may be restarting */ }
      say("The server does not respond. Your vote is kept here and sent again.", true);
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
  }

  async function act(where, fields, text) {
    if (busy) return;
    busy = true;
    for (const button of document.querySelectorAll("button")) button.disabled = true;
    try { sessionStorage.setItem(waitingVote, JSON.stringify({ where, fields })); } catch { /* storage may be disabled */ }
    const next = await send(where, fields);
    try { sessionStorage.removeItem(waitingVote); } catch { /* as above */ }
    for (const button of document.querySelectorAll("button")) button.disabled = false;
    busy = false;
    if (next) {
      showQuestion(next);
      say(text);
    } else location.reload();
  }

  function answer(value) {
    const key = answers.elements.namedItem("key").value;
    if (!key || answers.hidden) return;
    const card = answers.querySelector(`[data-side="${value}"]`);
    if (card) card.classList.add("chosen");
    const button = answers.querySelector(`button[value="${value}"] span:not(.key)`);  // Left, or Upper on a phone
    const words = button ? button.parentElement.innerText.replace(/[←→]/g, "").trim() : { tie: "Tie", skip: "Skipped" }[value] || `Rated ${value}`;
    act("/answer", { key, answer: value, seconds: (performance.now() - shown) / 1000 }, `${words}: stored.`);
  }

  answers.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter) answer(event.submitter.value);
  });
  undo.addEventListener("submit", (event) => {
    event.preventDefault();
    if (takeBack.disabled) return;
    act("/undo", {}, "The last vote was undone; answer it again.");
  });
  const bound = vote.dataset.kind === "pairs"
    ? { ArrowLeft: "first", ArrowRight: "second", ArrowDown: "tie", s: "skip" }
    : { 1: "1", 2: "2", 3: "3", 4: "4", 5: "5", s: "skip" };
  document.addEventListener("keydown", (event) => {
    if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // arrow keys scroll a text that has the focus
    if (event.key === "ArrowDown" && event.target.closest(".body")) return;
    if (key === "z" && !takeBack.disabled) undo.requestSubmit(takeBack);
    else if (bound[key]) answer(bound[key]);
    else return;
    event.preventDefault();
  });
  // a vote that this page could not send before it was reloaded
  try {
    const waiting = JSON.parse(sessionStorage.getItem(waitingVote));
    if (waiting && waiting.where === "/answer") act(waiting.where, waiting.fields, "The vote was stored.");
    else sessionStorage.removeItem(waitingVote);
  } catch { /* storage may be disabled */ }
}
if (vote) startVoting();

// -- boards ----------------------------------------------------------------------------------------------------
const board = document.querySelector("table[data-board]");

function drawIntervals(rows) {
  const ends = rows.flatMap((r) => [r.low, r.high]).filter((v) => v !== null);
  if (!ends.length) return;
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const place = (value) => 4 + (136 * (value - low)) / (high - low || 1);
  [...board.tBodies[0].rows].forEach((row, n) => {
    const r = rows[n];
    if (r.low === null || r.high === null) return;
    const cell = row.querySelector(".interval");
    const words = document.createElement("span");
    words.className = "figures";
    words.textContent = cell.textContent;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 144 18");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, value] of [["x1", place(r.low)], ["x2", place(r.high)], ["y1", 9], ["y2", 9]]) line.setAttribute(name, value);
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [name, value] of [["cx", place(r.score)], ["cy", 9], ["r", 4]]) dot.setAttribute(name, value);
    svg.append(line, dot);
    cell.replaceChildren(svg, words);
  });
}

function showBoard(state) {
  const { live } = state;
  const short = (value) => (value === null ? "" : value.toFixed(live.digits));
  const body = board.tBodies[0];
  body.replaceChildren();
  for (const r of live.rows) {
    const row = body.insertRow();
    const interval = r.low === null || r.high === null ? (r.score === null ? "" : "open") : `${short(r.low)} to ${short(r.high)}`;
    const cells = [[r.rank ?? "", "right"], [r.title, "wrap title"], [short(r.score), "right"], [interval, "interval"],
      [r.ranks, "right"], [r.score === null ? "" : r.may_lead ? "yes" : "no", ""], [r.votes, "right"]];
    for (const [text, name] of cells) {
      const cell = row.insertCell();
      cell.textContent = text;
      cell.className = name;
    }
  }
  drawIntervals(live.rows);
  document.getElementById("signal").textContent = live.words;
  document.getElementById("board-note").textContent = live.note;
  const count = document.getElementById("vote-count");
  if (count) {
    count.textContent = state.votes;
    document.getElementById("judge-count").textContent = state.judges.length;
  }
}

if (board) {
  const read = (row, name) => (row.dataset[name] === "" ? null : Number(row.dataset[name]));
  drawIntervals([...board.tBodies[0].rows].map((row) => ({ low: read(row, "low"), high: read(row, "high"), score: read(row, "score") })));
  let last = "";
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(board.dataset.board);
      const text = answer.ok ? await answer.text() : last;
      if (text !== last) showBoard(JSON.parse(text));
      last = text;
    } catch { /* the server may be restarting */ }
  }, 2000);
}
for (const link of document.querySelectorAll("a[data-absolute]")) link.textContent = link.href;
