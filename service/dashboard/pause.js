// Pauses and resumes automatic jobs, of all tables or of one.

import { get, send } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { moment, sentence } from "./format.js";
import { card, field, problem } from "./components.js";
import { ownLevel, update } from "./policy_level.js";
import { may } from "./role.js";

const SERVICE = "v1/pause";

/** Returns a notice of the pause; null without a pause. If `changed` is given, the notice has a button for operators
 * that ends the pause. */
export function pauseNotice({ paused, since, by, reason }, changed) {
  if (!paused) return null;
  return [
    problem({ title: `${sentence(by)} paused automatic jobs on ${moment(since)}`, detail: reason }, "warn"),
    changed && may("operator") && h("div", { class: "actions", "data-key": "resume" }, h("button", { type: "button", onclick: () => resume(changed) }, "Resume automatic jobs")),
  ];
}

/** The pause of the whole service, as a card. */
export class Pause {
  constructor() {
    this.state = null;
  }

  async load() {
    this.state = await get(SERVICE);
  }

  draw(changed) {
    if (!this.state) return null;
    const pause = (event) => {
      event.preventDefault();
      const reason = new FormData(event.target).get("reason");
      send("PUT", SERVICE, { reason }).then(() => changed(), changed);
    };
    return card(
      "pause",
      "Automatic jobs of all tables",
      this.state.paused ? pauseNotice(this.state, changed) : h("p", {}, "Automatic jobs start when the policies demand them."),
      !this.state.paused &&
        may("operator") &&
        h(
          "form",
          { onsubmit: pause },
          field("Reason", h("input", { name: "reason", maxlength: 1000, autocomplete: "off" }), "The pause shows the reason to everybody."),
          h("div", { class: "actions" }, h("button", {}, "Pause automatic jobs")),
          h("p", { class: "quiet" }, "Running jobs go on, and jobs can still be submitted."),
        ),
    );
  }
}

const resume = (changed) => send("DELETE", SERVICE).then(() => changed(), changed);

/** The button for one table, whose pause is a setting of its policy. */
export function pauseOfTable(path, effective, changed) {
  const { paused } = effective.policy;
  const set = async () => {
    const text = "No job of this table starts automatically any more. Running jobs go on.";
    if (!paused && !(await confirmed("Pause this table?", text, "Pause it"))) return;
    const withPause = (own) => update(path, (latest) => own(ownLevel(latest)));
    try {
      const answer = await withPause(({ paused: _own, ...others }) => (paused ? others : { ...others, paused: true }));
      // The policy of a pattern may pause the table too, so the table's own policy must overrule it.
      if (paused && answer.policy.paused) await withPause((own) => ({ ...own, paused: false }));
      changed();
    } catch (error) {
      changed(error);
    }
  };
  return h("button", { type: "button", class: "small", "data-key": "pause", onclick: set }, paused ? "Resume automatic jobs" : "Pause automatic jobs");
}
