// A form that changes what is declared about a table: the lock and the writers.

import { attempt, getTagged, problemOf, send, tablePath } from "./api.js";
import { h } from "./dom.js";
import { problem } from "./components.js";
import { choicesOf, lockFields, lockIn, writersFields, writersIn } from "./declaration_fields.js";

export class Declarations {
  constructor(id, changed) {
    this.path = tablePath(id);
    this.changed = changed;
    this.table = null;
    this.tag = null;
    this.chosen = null;
    this.failure = null;
    this.isSaved = false;
  }

  async #load() {
    try {
      // The tag belongs to the state that the form shows. If somebody else has changed the table since, the service
      // refuses the call, so that the other change is not overwritten.
      const { document: table, tag } = await getTagged(this.path);
      [this.table, this.tag, this.chosen] = [table, tag, choicesOf(table)];
      this.failure = null;
    } catch (error) {
      this.failure = problemOf(error);
    }
    this.changed.redraw();
  }

  draw() {
    const open = (event) => {
      this.isSaved = false;
      if (event.target.open) void this.#load();
      else this.table = null;
    };
    return h(
      "details",
      { class: "card", "data-key": "declarations", ontoggle: open },
      h("summary", {}, h("strong", {}, "Change what is declared")),
      this.failure && problem(this.failure),
      this.isSaved && h("p", { class: "problem good", role: "status" }, "Saved."),
      this.table && this.#form(),
    );
  }

  #form() {
    const set = (name) => (event) => {
      this.chosen[name] = event.target.value;
      this.changed.redraw();
    };
    return h(
      "form",
      { onsubmit: (event) => this.#save(event), "data-key": this.tag },
      ...lockFields(this.chosen, set, this.table.lock),
      ...writersFields(this.chosen, set, this.table.writers),
      h("div", { class: "actions" }, h("button", { class: "primary" }, "Save")),
      h("p", { class: "quiet" }, "Every writer must take this lock. Name all engines that write the table."),
    );
  }

  #save(event) {
    event.preventDefault();
    const body = this.#change(new FormData(event.target));
    this.isSaved = false;
    const save = async () => {
      if (Object.keys(body).length) await send("PATCH", this.path, body, this.tag);
      await this.#load();
      this.isSaved = true;
    };
    return attempt(save, this.changed, (found) => (this.failure = found));
  }

  /** Returns only the members that differ, because a new declaration of engines discards detected ones. */
  #change(data) {
    const { lock, writers } = this.table;
    const wantedLock = { ...lockIn(data), wait_seconds: lock.wait_seconds };
    const wanted = writersIn(data);
    const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
    if (isSame([...(wanted.engines ?? [])].sort(), [...(writers.engines ?? [])].sort())) delete wanted.engines;
    const isVersionKept = (wanted.hudi_version ?? null) === writers.hudi_version && Boolean(wanted.stopped) === writers.stopped;
    if (isVersionKept) [delete wanted.hudi_version, delete wanted.stopped];
    else if (wanted.hudi_version) wanted.retry_conflicts = writers.retry_conflicts;
    return {
      ...(!(wantedLock.provider === lock.provider && isSame(wantedLock.options, lock.options)) && { lock: wantedLock }),
      ...(Object.keys(wanted).length > 0 && { writers: wanted }),
    };
  }
}
