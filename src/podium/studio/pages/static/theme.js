// The chosen theme, set before the page is drawn; without a choice the page follows the system.
"use strict";
try {
  const chosen = localStorage.getItem("podium-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* storage may be disabled */ }
