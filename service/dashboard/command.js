// A line to paste into a shell.

import { h } from "./dom.js";

const SHOWN_MS = 2000;

/** The line, with a button that copies it. `purpose` tells a screen reader which of several it is. */
export function command(line, purpose) {
  const code = h("code", {}, line);
  const copy = (event) => copied(event.currentTarget, line);
  return h("div", { class: "command", "data-key": "command" }, code, h("button", { type: "button", class: "small", "aria-label": `Copy the command: ${purpose}`, onclick: copy }, "Copy"));
}

async function copied(button, line) {
  const said = (await isCopied(button, line)) ? "Copied" : "Selected";
  button.textContent = said;
  document.getElementById("spoken").textContent = said === "Copied" ? "The command is copied." : "The command is selected; copy it with the keyboard.";
  setTimeout(() => (button.textContent = "Copy"), SHOWN_MS);
}

async function isCopied(button, line) {
  try {
    await navigator.clipboard.writeText(line);
    return true;
  } catch {
    // Browsers have no clipboard for pages without HTTPS, and may refuse it to others.
    getSelection().selectAllChildren(button.previousElementSibling);
    return document.execCommand("copy");
  }
}
