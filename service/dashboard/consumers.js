// The incremental readers of a table. Cleaning and archival keep the commits that such a reader has not read yet.

import { attempt, get, send, tablePath } from "./api.js";
import { card, field, grid, problem, time } from "./components.js";
import { h } from "./dom.js";
import { may } from "./role.js";

const HEADINGS = ["Consumer", "Has read up to", "Reported", "Unread commits are kept", ""];

export class Consumers {
  constructor(id, changed) {
    [this.path, this.changed] = [`${tablePath(id)}/consumers`, changed];
    [this.items, this.failure] = [null, null];
  }

  async load() {
    this.items = (await get(this.path)).items;
  }

  draw() {
    if (!this.items || (!this.items.length && !may("operator"))) return null;
    return card(
      "consumers",
      "Consumers",
      grid("Consumers", HEADINGS, this.items.map((each) => this.#row(each)), "No incremental reader of this table has reported up to which commit it has read."),
      this.failure && problem(this.failure),
      may("operator") && this.#form(),
    );
  }

  #row({ name, instant, seen_at: seen, expires_at: expires, stale }) {
    const remove = () => this.#after(() => send("DELETE", this.#of(name)));
    return {
      key: name,
      cells: [name, h("code", {}, instant), time(seen), stale ? h("span", { class: "tag warn" }, "no longer, because no report came") : ["until ", time(expires)], may("operator") && h("button", { type: "button", class: "small danger", "aria-label": `Remove ${name}`, onclick: remove }, "Remove")],
    };
  }

  #form() {
    const declare = (event) => {
      event.preventDefault();
      const { name, instant } = Object.fromEntries(new FormData(event.target));
      this.#after(() => send("PUT", this.#of(name), { instant }).then(() => event.target.reset()));
    };
    const text = (label, name, pattern, hint) => field(label, h("input", { name, pattern, required: true, autocomplete: "off", spellcheck: "false" }), hint);
    return h(
      "form",
      { class: "narrow", onsubmit: declare, "data-key": "form" },
      text("Name of a consumer", "name", "[A-Za-z0-9][A-Za-z0-9_.\\-]{0,63}"),
      text("Last instant that it has read", "instant", "[0-9]{14,17}", "Such as 20260101120000000."),
      h("div", { class: "actions" }, h("button", {}, "Declare the consumer")),
    );
  }

  #of = (name) => `${this.path}/${encodeURIComponent(name)}`;

  #after(call) {
    this.failure = null;
    return attempt(call, this.changed, (found) => (this.failure = found));
  }
}
