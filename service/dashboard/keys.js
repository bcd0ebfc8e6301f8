// Keys that work on every page.

const TEXT = "input:not([type=checkbox]), textarea, select, [contenteditable]";

/** `/` opens the overview and focuses its search; from there, ↓ focuses the first table. `?` shows the keys. */
export function listenToKeys() {
  const help = document.getElementById("keys");
  document.getElementById("help").onclick = () => help.showModal();
  addEventListener("keydown", (event) => {
    if (event.target.id === "search" && event.key === "ArrowDown") {
      document.querySelector(".matrix tbody .c-name a")?.focus();
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TEXT) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") help.showModal();
    else if (event.key === "/") search();
    else return;
    event.preventDefault();
  });
}

function search() {
  const field = document.getElementById("search");
  if (field) {
    field.focus();
    field.select();
    return;
  }
  const main = document.getElementById("main");
  const shown = new MutationObserver(() => {
    const found = document.getElementById("search");
    if (!found) return;
    shown.disconnect();
    found.focus();
  });
  shown.observe(main, { childList: true, subtree: true });
  location.hash = "#/";
}
