// Shows lines to paste into a shell, and other texts to copy.

import { h } from "./dom.js";

const SHOWN_MS = 2000;

/** Returns the line with a button that copies it. `purpose` names the line for screen readers, as a page may have
 * several lines. */
export function command(line, purpose) {
  const button = copyButton(line, `the command: ${purpose}`, "The command");
  return h("div", { class: "command", "data-key": "command" }, h("code", {}, line), button);
}

/** Returns a button, to be placed beside the element that shows the text. `what` names the text for screen readers, as
 * a page may have several texts to copy. */
export function copyButton(text, what, spoken = what) {
  const copy = (event) => copied(event.currentTarget, text, spoken);
  return h("button", { type: "button", class: "small", "aria-label": `Copy ${what}`, onclick: copy }, "Copy");
}

async function copied(button, text, what) {
  const said = (await isCopied(button, text)) ? "Copied" : "Selected";
  button.textContent = said;
  document.getElementById("spoken").textContent = said === "Copied" ? `${what} is copied.` : `${what} is selected; copy it with the keyboard.`;
  setTimeout(() => (button.textContent = "Copy"), SHOWN_MS);
}

async function isCopied(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no clipboard for pages without HTTPS, and may refuse it to other pages.
    getSelection().selectAllChildren(button.parentElement.querySelector("code") ?? button.parentElement.nextElementSibling);
    return document.execCommand("copy");
  }
}
