// The dialogs: a confirmation, and the request for a token.

import { token } from "./api.js";

const byId = (id) => document.getElementById(id);

/** Resolves to true if the user confirms. Escape means no. */
export function confirmed(title, text, yes) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
  });
}

/** Asks for a token, keeps it for this tab, then calls `done`. Only updates the message if the dialog is open. */
export function askForToken(why, done) {
  const dialog = byId("token");
  const problem = byId("token-problem");
  problem.hidden = !why;
  problem.textContent = why ?? "";
  if (dialog.open) return;
  dialog.returnValue = "";
  dialog.onclose = () => {
    const text = byId("token-text").value.trim();
    byId("token-text").value = "";
    if (dialog.returnValue !== "yes" || !text) return;
    token.set(text);
    done();
  };
  dialog.showModal();
}
