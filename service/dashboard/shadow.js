// The shadow of a pattern's policy: another policy on trial, which starts no jobs. On demand, the service replays the
// commits with both policies and compares them.

import { attempt, get, problemOf, send } from "./api.js";
import { card, problem, time } from "./components.js";
import { h } from "./dom.js";
import { settingsInWords } from "./policy_words.js";
import { may } from "./role.js";
import { Simulation } from "./simulation.js";

const PATIENCE_MS = 60_000;

export class Shadow {
  /** `save` stores the policy of the pattern, unless somebody else has changed that policy since the page showed it. */
  constructor(pattern, changed, save) {
    [this.pattern, this.changed, this.save] = [pattern, changed, save];
    this.path = `v1/policy-shadows/${encodeURIComponent(pattern)}`;
    [this.found, this.failure, this.isComparing] = [null, null, false];
    this.comparison = new Simulation(changed.redraw);
  }

  async load() {
    this.found = (await get("v1/policy-shadows")).items.find((each) => each.pattern === this.pattern) ?? null;
    if (!this.found) this.comparison.forget();
  }

  /** Puts a policy on trial as the shadow of the real one, from now on. */
  start(policy) {
    return this.#after(() => send("PUT", this.path, policy));
  }

  draw() {
    if (!this.found) return this.failure && h("div", { "data-key": "shadow-failure" }, problem(this.failure));
    const { settings, started_at: since } = this.found;
    return h(
      "div",
      { class: "after-form", "data-key": "shadow" },
      card(
        "shadow-card",
        "Shadow",
        h("p", {}, "The trial of this policy as a shadow began ", time(since), ". A shadow starts no jobs. The settings:"),
        ...settingsInWords(settings),
        this.failure && problem(this.failure),
        h(
          "div",
          { class: "actions" },
          h("button", { type: "button", disabled: this.isComparing, onclick: () => this.#compare() }, this.isComparing ? "The commits are being replayed" : "Compare"),
          may("operator") && h("button", { type: "button", onclick: () => this.#adopt() }, "Make it the policy"),
          may("operator") && h("button", { type: "button", class: "danger", onclick: () => this.#after(() => send("DELETE", this.path)) }, "End it"),
        ),
      ),
      this.comparison.draw("Shadow and policy since the shadow began, at most a week"),
    );
  }

  async #compare() {
    [this.isComparing, this.failure] = [true, null];
    this.changed.redraw();
    try {
      this.comparison.show((await send("GET", this.path, undefined, null, PATIENCE_MS)).comparison);
    } catch (error) {
      this.failure = problemOf(error);
    }
    this.isComparing = false;
    this.changed.redraw();
  }

  #adopt() {
    const { settings, precedence } = this.found;
    return this.#after(async () => {
      await this.save({ ...settings, precedence });
      await send("DELETE", this.path);
    });
  }

  #after(call) {
    this.failure = null;
    return attempt(call, this.changed, (found) => (this.failure = found));
  }
}
