// The table's lock: its holder, signs of whether the holder is alive, and for operators a form to break the lock.

import { get, problemOf, Refused, send, tablePath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { kindName, moment, seconds, sentence } from "./format.js";
import { card, field, jobLink, pairs, problem, time } from "./components.js";
import { may } from "./role.js";

// The lock is requested seldom, because each request makes the service read the storage of the table.
const EVERY_MS = 15_000;
const STATES = { held: "held", free: "free", unknown: "not known to the service" };
const MOST_SHOWN = 5;

export class Lock {
  constructor(id, changed) {
    this.path = `${tablePath(id)}/lock`;
    this.changed = changed;
    this.lock = null;
    this.reason = "";
    this.failure = null;
    this.broken = null;
    this.readAt = -Infinity;
  }

  async load() {
    if (performance.now() - this.readAt < EVERY_MS) return;
    this.readAt = performance.now();
    try {
      this.lock = await get(this.path);
      this.unreadable = null;
    } catch (error) {
      // If the lock cannot be read, the rest of the page is shown without it.
      this.unreadable = problemOf(error);
    }
    this.changed.redraw();
  }

  draw() {
    if (this.unreadable) return card("lock", "The table's lock", problem(this.unreadable, "quietly"));
    if (!this.lock) return null;
    const { state, detail, since, holder, path, provider, ends_at: endsAt, ending, refusal, writers, jobs } = this.lock;
    return card(
      "lock",
      "The table's lock",
      // The failure is shown outside of the form, because the new state of the lock may have no form.
      this.failure && problem(this.failure),
      this.broken && problem({ title: "The lock was broken", detail: `Its holder was ${this.broken.holder}.` }, "good"),
      pairs(
        ["State", [h("span", { class: `tag ${state === "held" ? "warn" : ""}` }, STATES[state]), detail && ` ${detail}`]],
        ["Held since", since && [time(since), ` (${moment(since)})`]],
        ["Held by", holder],
        ["Provider", provider.split(".").pop()],
        ["File", path && h("code", {}, path)],
        ["Ends", endsAt && h("time", { datetime: endsAt }, moment(endsAt))],
        ["If its holder never releases it", state !== "free" && ending],
        ["Heartbeats", writers.length > 0 && h("ul", { class: "plain" }, ...writers.slice(0, MOST_SHOWN).map(heartbeat))],
        ["Jobs", jobs.length > 0 && h("ul", { class: "plain" }, ...jobs.map(job))],
      ),
      state === "held" && refusal && h("p", { class: "quiet" }, `The lock cannot be broken now. ${refusal.title}. ${refusal.detail}`),
      this.lock.is_breakable && (may("operator") ? this.#form() : h("p", { class: "quiet" }, "An operator may break it.")),
    );
  }

  #form() {
    const submit = (event) => {
      event.preventDefault();
      this.#break();
    };
    const input = h("input", { name: "reason", required: true, maxlength: 500, autocomplete: "off", oninput: (event) => (this.reason = event.target.value) });
    return h(
      "form",
      { "data-key": "break", onsubmit: submit },
      h("h3", {}, "Break it"),
      field("Why its holder is dead", input, "The audit trail keeps this reason. A holder that is only slow would write at the same time as others."),
      h("div", { class: "actions" }, h("button", { type: "submit", class: "danger" }, "Break the lock")),
    );
  }

  async #break() {
    const { id, holder, age_seconds: age } = this.lock;
    const text = `The lock has been held for ${seconds(age)} by ${holder}. If the holder is alive after all, it writes at the same time as others.`;
    if (!(await confirmed("Break the table's lock?", text, "Break the lock"))) return;
    const query = new URLSearchParams({ reason: this.reason, lock_id: id });
    try {
      this.broken = await send("DELETE", `${this.path}?${query}`);
      this.failure = null;
    } catch (error) {
      if (!(error instanceof Refused)) return this.changed(error);
      this.failure = error.problem;
      this.broken = null;
    }
    this.readAt = -Infinity;
    this.changed();
  }
}

function heartbeat({ instant, is_alive: isAlive, heartbeat_at: at, job_id: id }) {
  const whose = id ? [", of ", jobLink({ id }, "a job of this service")] : isAlive && ", alive";
  return h("li", { "data-key": instant }, h("code", {}, instant), " ", time(at), whose);
}

function job({ id, kind, state, holds, waits }) {
  const part = holds ? "holds it" : waits ? "waits for it" : sentence(state).toLowerCase();
  return h("li", { "data-key": id }, jobLink({ id }, kindName(kind)), ` ${part}`);
}
