// Opening files: drag and drop, progress of an upload, forms that send themselves when a choice changes.
"use strict";

const upload = document.getElementById("upload");
if (upload) {
  const drop = upload.querySelector("[data-drop]");
  const files = upload.querySelector("input[type=file]");
  const state = document.getElementById("uploading");
  const [bar, words] = [state.querySelector("progress"), state.querySelector("span")];

  const send = () => {
    const request = new XMLHttpRequest();
    state.hidden = false;
    words.textContent = "Uploading";
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      bar.value = event.loaded / event.total;
      words.textContent = event.loaded < event.total ? `${Math.round(100 * bar.value)} %` : "Reading the files";
    });
    request.addEventListener("load", () => {
      if (request.status < 400) { location.assign(request.responseURL); return; }
      showProblem(upload, request.responseText);
      state.hidden = true;
    });
    request.addEventListener("error", () => { words.textContent = "The server does not respond; try again."; });
    request.open("POST", upload.action);
    request.send(new FormData(upload));
  };

  upload.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  files.addEventListener("change", () => { if (files.files.length) send(); });
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  for (const name of ["dragleave", "drop"]) {
    drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  }
  drop.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    files.files = event.dataTransfer.files;
    send();
  });
}

for (const form of document.querySelectorAll("form[data-autosubmit]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("select")) form.requestSubmit();
  });
}

// the words of an error above its form, which keeps what was entered and the chosen files
function showProblem(form, text) {
  const alert = new DOMParser().parseFromString(text, "text/html").querySelector("[role=alert]");
  document.querySelector("[role=alert]")?.remove();
  if (alert) form.before(document.adoptNode(alert));
  return Boolean(alert);
}

for (const form of document.querySelectorAll("form[data-send]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button:not([type=button])");
    button.disabled = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body: new FormData(form) });
      if (answer.ok) { location.assign(answer.url); return; }
      if (!showProblem(form, await answer.text())) showToast(`The server answers with status ${answer.status}.`);
    } catch {
      showToast("The server does not respond; try again.");
    }
    button.disabled = false;
  });
}

// Apply: the choice of files sends the form; the page stays, so an error loses neither the choices nor the files
for (const applyForm of document.querySelectorAll("form[data-apply]")) {
  const words = applyForm.querySelector("[role=status]");
  const files = applyForm.querySelector("input[type=file]");
  files.addEventListener("change", () => { if (files.files.length) applyForm.requestSubmit(); });
  const button = applyForm.querySelector("button");
  applyForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    applyForm.parentNode.querySelector("[role=alert]")?.remove();
    words.textContent = "Computing the ranking";
    button.disabled = true;
    try {
      const answer = await fetch(applyForm.action, { method: "POST", body: new FormData(applyForm) });
      words.textContent = "";
      if (answer.ok) {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(await answer.blob());
        link.download = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") || "")?.[1] || "podium-result";
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
        words.textContent = "The result was downloaded.";
      } else {
        const text = await answer.text();
        if (!showProblem(applyForm, text)) words.textContent = text.slice(0, 300);
      }
    } catch {
      words.textContent = "The server does not respond; try again.";
    }
    button.disabled = false;
  });
}
