// The two questions that the page asks: are you sure, and who are you.

import { token } from "./api.js";

const byId = (id) => document.getElementById(id);

/** Resolves to true when a person says yes. Escape is a no. */
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

/** Asks for a token and keeps it for this tab; then calls `given`. Does nothing while it asks already. */
export function askForToken(why, given) {
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
    given();
  };
  dialog.showModal();
}
