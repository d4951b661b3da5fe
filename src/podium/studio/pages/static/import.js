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
      // the page with the error replaces this one; the chosen files stay in the field
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      const alert = page.querySelector("[role=alert]");
      upload.parentNode.querySelector("[role=alert]")?.remove();
      if (alert) upload.before(document.adoptNode(alert));
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
