// The advice about a setting of a table, with the measured figures. Also shows how the largest bucket grows, and which
// index suits the table.

import { attempt, getTagged, send, tablePath } from "./api.js";
import { card, pairs, problem, time } from "./components.js";
import { h } from "./dom.js";
import { sentence } from "./format.js";
import { may } from "./role.js";

const WORDS = { open: "Not applied", applied: "Applied", kept: "Applied; the outcome is as expected", "taken-back": "Taken back", dismissed: "Dismissed" };

export class Advice {
  constructor(id, changed) {
    [this.path, this.changed] = [`${tablePath(id)}/advice`, changed];
    [this.found, this.tag, this.failure] = [null, null, null];
  }

  async load() {
    ({ document: this.found, tag: this.tag } = await getTagged(this.path));
  }

  get isOpen() {
    return this.found?.state === "open";
  }

  draw() {
    if (!this.found) return null;
    const { state, because, buckets, index, changed_at: at } = this.found;
    return card(
      "advice",
      "Advice",
      pairs(
        [state === "none" ? "No advice" : "Setting", sentence(because)],
        ["State", state !== "none" && [WORDS[state], at && [", ", time(at)]]],
        ["Buckets", buckets && sentence(buckets.text)],
        ["Index", index && sentence(index.text)],
      ),
      this.failure && problem(this.failure),
      this.isOpen &&
        may("operator") &&
        h(
          "div",
          { class: "actions" },
          h("button", { type: "button", class: "primary", onclick: () => this.#answer("applied") }, "Apply it"),
          h("button", { type: "button", onclick: () => this.#answer("dismissed") }, "Dismiss it"),
        ),
    );
  }

  #answer(state) {
    this.failure = null;
    return attempt(() => send("PUT", this.path, { state }, this.tag), this.changed, (found) => (this.failure = found));
  }
}
