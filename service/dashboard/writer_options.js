// The options and SQL that the writers of a table need, for each engine, to copy.

import { get, problemOf, tablePath } from "./api.js";
import { copyButton } from "./command.js";
import { h } from "./dom.js";
import { field, problem, select } from "./components.js";

export const ENGINES = [
  ["spark", "Spark (DataFrames)"],
  ["spark-sql", "Spark SQL"],
  ["flink", "Flink"],
];
// Titles of the SQL texts, by purpose.
const SQL = { set: "SET statements", with: "WITH clause of CREATE TABLE", create: "CREATE TABLE" };

export class WriterOptions {
  constructor(id, changed) {
    this.path = `${tablePath(id)}/writer-options`;
    this.changed = changed;
    this.engine = null;
    this.found = null;
    this.failure = null;
    this.isOpen = false;
  }

  async #load() {
    const { engine } = this;
    try {
      const found = await get(this.path, { engine });
      if (engine !== this.engine) return;
      this.found = found;
      this.failure = null;
    } catch (error) {
      this.failure = problemOf(error);
    }
    this.changed.redraw();
  }

  /** The options are requested when somebody opens them. */
  draw(table) {
    const declared = [...(table.writers.engines ?? []), ...Object.keys(table.writers.detected ?? {})];
    const open = (event) => {
      this.isOpen = event.target.open;
      if (!this.isOpen) return;
      this.engine ??= declared[0] ?? "spark";
      void this.#load();
    };
    const choose = (event) => {
      this.engine = event.target.value;
      this.found = null;
      void this.#load();
    };
    return h(
      "details",
      { class: "card", "data-key": "writer-options", ontoggle: open },
      h("summary", {}, h("strong", {}, "Options for its writers")),
      this.failure && problem(this.failure),
      this.engine && h("div", { class: "filters" }, field("Engine of the writer", select({ onchange: choose }, ENGINES, this.engine))),
      this.found && this.#shown(),
    );
  }

  #shown() {
    const { options, session_conf: session, sql, notes } = this.found;
    const lines = (entries) => Object.entries(entries).map(([name, value]) => `${name}=${value}`).join("\n");
    return [
      ...Object.entries(SQL).filter(([purpose]) => sql[purpose]).map(([purpose, title]) => block(title, sql[purpose])),
      block("Options of the writer", lines(options)),
      Object.keys(session).length > 0 && block("Options for the start of the session", lines(session)),
      notes.length > 0 && h("ul", { "data-key": "notes" }, ...notes.map((note) => h("li", { "data-key": note }, note))),
    ];
  }
}

function block(title, text) {
  return h("section", { "data-key": title, "aria-label": title }, h("h3", {}, title, " ", copyButton(text, title)), h("pre", { class: "options", tabindex: 0 }, text));
}
