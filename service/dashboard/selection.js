// The tables that are selected in the list, and the actions on all of them in one call.

import { post } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { count, number } from "./format.js";
import { KINDS } from "./kinds.js";
import { problem, select, tableLink } from "./components.js";
import { may } from "./role.js";

// One call may name this many tables at most.
const MOST = 500;
const ACTIONS = {
  pause: ["Pause", "Their policies start no job any more. Running jobs go on."],
  resume: ["Resume", "Their policies start jobs again."],
  run: ["Run", "A job of this kind is submitted for each table."],
  acknowledge: ["Acknowledge", "Their present problems are marked as known until they end. A problem that comes back, or a new one, is shown again."],
  poll: ["Poll", "Their timelines are read now."],
  policy: ["Set policy", "This setting is changed in each table's own policy; the other settings stay."],
  label: ["Owner and tags", "Owner and tags are declared for each table. Policies, notifications and reports select tables by them."],
};

export class Selection {
  constructor(changed) {
    this.changed = changed;
    /** The names of the selected tables by id. Selected tables of other pages are included. */
    this.tables = new Map();
    this.kind = "compaction";
    /** The action whose form is open, and the form. */
    this.form = null;
    this.opened = null;
    this.result = null;
  }

  has = ({ id }) => this.tables.has(id);

  #set(rows, isChosen) {
    this.result = null;
    for (const { id, name } of rows) {
      if (!isChosen) this.tables.delete(id);
      else if (this.tables.size < MOST) this.tables.set(id, name);
    }
    this.changed.redraw();
  }

  drawHead(rows) {
    const every = rows.length > 0 && rows.every(this.has);
    return h("th", { scope: "col", class: "c-pick" }, this.#box("Select all tables of this page", every, rows));
  }

  drawCell(table) {
    return h("td", { class: "c-pick" }, this.#box(`Select ${table.name}`, this.has(table), [table]));
  }

  #box(label, isChosen, rows) {
    const box = h("input", { type: "checkbox", "aria-label": label, checked: isChosen, onchange: (event) => this.#set(rows, event.target.checked) });
    // The property keeps what the user has clicked, so a redraw has to set the property.
    box.handlers.checked = isChosen;
    return box;
  }

  draw() {
    if (!this.tables.size && !this.result) return null;
    const clear = () => {
      this.tables.clear();
      this.result = null;
      this.changed.redraw();
    };
    const button = (action) => h("button", { type: "button", class: "small", "data-key": action, onclick: () => this.#do(action) }, ACTIONS[action][0]);
    return h(
      "div",
      { class: "bulk", role: "group", "aria-label": "Selected tables", "data-key": "bulk" },
      h("strong", { role: "status" }, `${number(this.tables.size)} selected`),
      ...["pause", "resume", "acknowledge", "poll"].map(button),
      h("span", { class: "line" }, select({ "aria-label": "Kind of the job", onchange: (event) => (this.kind = event.target.value) }, Object.entries(KINDS), this.kind), button("run")),
      ...["policy", ...(may("admin") ? ["label"] : [])].map((action) => this.#opener(action)),
      h("button", { type: "button", class: "link", onclick: clear }, "Clear"),
      this.form && h("div", { class: "wide", "data-key": `form ${this.opened}` }, this.form.draw()),
      this.result && outcomes(this.result),
    );
  }

  #opener(action) {
    const isOpen = this.opened === action;
    const send = (more, said) => this.#do(action, more, said);
    const toggle = async () => {
      // The modules of these forms are loaded only now, so that the overview need not wait for them.
      const { LabelForm, SettingForm } = await import("./bulk_forms.js");
      this.opened = isOpen ? null : action;
      this.form = isOpen ? null : new (action === "policy" ? SettingForm : LabelForm)(this.changed.redraw, send);
      this.changed.redraw();
    };
    return h("button", { type: "button", class: "small", "data-key": action, "aria-expanded": String(isOpen), onclick: toggle }, ACTIONS[action][0]);
  }

  async #do(action, more = {}, said = "") {
    const [words, effect] = ACTIONS[action];
    const title = `${words} ${count(this.tables.size, "table")}?`;
    if (!this.tables.size || !(await confirmed(title, said ? `${said}. ${effect}` : effect, words))) return;
    const body = { action, tables: [...this.tables.keys()], ...(action === "run" && { job: { kind: this.kind } }), ...more };
    try {
      this.result = await post("v1/tables/bulk", body);
      this.form = this.opened = null;
      for (const each of this.result.items) if (each.outcome !== "refused") this.tables.delete(each.table_id);
      this.changed();
    } catch (error) {
      this.changed(error);
    }
  }
}

function outcomes({ done, unchanged, refused, items }) {
  const words = [done && `${number(done)} done`, unchanged && `${number(unchanged)} needed no change`, refused && `${number(refused)} refused`].filter(Boolean);
  const failed = items.filter((each) => each.problem);
  return h(
    "div",
    { class: "wide", "data-key": "outcomes" },
    h("p", { role: "status" }, words.join(", "), "."),
    ...failed.slice(0, 20).map((each) => h("div", { "data-key": each.table }, tableLink(each.table_id ?? each.table, each.table_name ?? each.table), problem(each.problem))),
  );
}
