// The page that asks for a token, in place of any view. The page does not keep the token: the browser gets the cookie
// of a session.

import { logIn, pathOf, problemOf } from "./api.js";
import { h } from "./dom.js";
import { problem } from "./components.js";

/** `why` is the reason that a session is needed now, or null. `done` runs after the log-in, `redraw` after a change. */
export function loginPage(why, done, redraw) {
  const { provider } = document.documentElement.dataset;
  let refused = null;
  let isBusy = false;

  async function submit(event) {
    event.preventDefault();
    const input = event.target.elements.token;
    const token = input.value.trim();
    if (!token || isBusy) return;
    isBusy = true;
    redraw();
    try {
      await logIn(token);
      input.value = "";
      done();
    } catch (error) {
      refused = error.status === 401 ? { title: "The token is not valid", hint: "The token may have expired or been revoked." } : problemOf(error);
      isBusy = false;
      redraw();
      input.select();
    }
  }

  function draw() {
    return [
      h(
        "section",
        { class: "card login", "data-key": "login", "aria-labelledby": "login-title" },
        h("h1", { id: "login-title" }, "Log in"),
        why && h("p", { class: "problem warn" }, why),
        h("div", { role: "alert", "data-key": "refused" }, refused && problem(refused)),
        provider && h("p", {}, h("button", { type: "button", class: "primary", onclick: begin }, `Log in with ${provider}`)),
        h(
          "form",
          { onsubmit: submit },
          h(
            "label",
            { class: "field" },
            h("span", {}, "Token"),
            h("input", { name: "token", type: "password", autocomplete: "current-password", spellcheck: "false", required: true }),
          ),
          h("div", { class: "actions" }, h("button", { class: provider ? "" : "primary", disabled: isBusy }, isBusy ? "Logging in …" : "Log in")),
        ),
        h(
          "p",
          { class: "quiet" },
          "An administrator creates one with ",
          h("code", {}, "groundskeeper token create"),
          ": the role reader may view, the role operator may start and cancel jobs.",
        ),
      ),
    ];
  }

  return { draw };
}

/** Sends the browser to the OpenID provider, which sends it back to this page. */
function begin() {
  const url = pathOf("login");
  if (location.hash.startsWith("#/")) url.searchParams.set("next", location.hash);
  location.assign(url);
}
