// The settings of one level of a policy, in groups. Each has its value with unit, range and default, and its edit.

import { h } from "./dom.js";
import { described, kindName } from "./format.js";
import { grid } from "./components.js";
import { control } from "./controls.js";
import { labelOf, rangeOf, shown } from "./quantities.js";
import { may } from "./role.js";

const HEADINGS = ["Setting", "Value", "From"];
const GENERAL = "general";
const RESET = Symbol("reset");
const sectionOf = (name) => (name.includes(".") ? name.split(".")[0] : GENERAL);

export class PolicyForm {
  /** `level` names the edited level, such as `this table`. `touched` is called after each edit. */
  constructor(level, touched) {
    this.level = level;
    this.touched = touched;
    /** The known settings by name: the present value, the words for its source, and whether the source is this
     * level. */
    this.known = new Map();
    this.schemas = new Map();
    /** Changes that are not saved; RESET removes a setting, so that weaker levels apply. */
    this.edits = new Map();
    this.revision = 0;
    this.isDrawn = false;
  }

  take(known, schemas) {
    this.known = known;
    this.schemas = schemas;
  }

  /** Returns the settings that the level would have, as pairs of a name and a value. */
  entries() {
    const own = [...this.known].filter(([name, each]) => each.isOwn && !this.edits.has(name)).map(([name, { value }]) => [name, value]);
    return [...own, ...[...this.edits].filter(([, value]) => value !== RESET)];
  }

  /** Returns whether the setting was edited. */
  isEdited = (name) => this.edits.has(name);

  forget() {
    this.edits = new Map();
    this.revision += 1;
  }

  draw() {
    const names = [...this.known.keys()];
    const isFirst = !this.isDrawn;
    this.isDrawn = true;
    return [...new Set(names.map(sectionOf))].map((section) => this.#section(section, names.filter((name) => sectionOf(name) === section), isFirst));
  }

  /** The first group is open until the reader closes it. */
  #section(section, names, isFirst) {
    const own = names.filter((name) => this.known.get(name).isOwn || this.edits.has(name)).length;
    const title = section === GENERAL ? "General" : kindName(section);
    return h(
      "details",
      { class: "card settings", "data-key": section, open: isFirst && (section === GENERAL || (own > 0 && this.isOpenIfOwn)) },
      h("summary", {}, h("strong", {}, title), " ", this.#state(section), own > 0 && [" ", h("span", { class: "tag note" }, `${own} of ${this.level}`)]),
      grid(title, HEADINGS, names.map((name) => ({ key: name, cells: this.#cells(name) }))),
    );
  }

  #state(section) {
    const { value, isOwn } = this.known.get(`${section}.enabled`) ?? this.known.get(`${section}.mode`) ?? {};
    if (value === undefined || (this.isOpenIfOwn && !isOwn)) return null;
    return h("span", { class: "quiet" }, typeof value === "boolean" ? (value ? "on" : "off") : value);
  }

  #cells(name) {
    const schema = this.schemas.get(name) ?? {};
    const { value, source, isOwn } = this.known.get(name);
    const edited = this.edits.has(name);
    const isReset = this.edits.get(name) === RESET;
    const words = edited ? (isReset ? "weaker levels, when saved" : `${this.level}, when saved`) : source;
    const canReset = may("operator") && (edited ? !isReset : isOwn);
    const label = labelOf(name);
    const range = rangeOf(name, schema);
    const usual = "x-default" in schema || schema.isOptional ? `default: ${shown(name, schema["x-default"])}` : null;
    const about = [schema.description && `${described(schema)}.`, [range, usual].filter(Boolean).join("; ")].filter(Boolean);
    const entered = edited && !isReset ? this.edits.get(name) : value;
    // The key changes with a reset. Thus the control is drawn anew, without the typed text.
    const properties = { "aria-label": `${label} (${name})`, "data-key": `${name} ${this.revision}` };
    return [
      [label, ...about.map((text) => h("div", { class: "quiet" }, h("small", {}, text)))],
      may("operator") ? control(name, schema, entered, (read) => this.#edit(name, read), properties) : shown(name, value),
      [
        h("span", { class: edited || isOwn ? "tag note" : "quiet" }, words),
        canReset && [" ", h("button", { type: "button", class: "small", "aria-label": `Reset ${name}`, onclick: () => this.#edit(name, RESET) }, "Reset")],
      ],
    ];
  }

  #edit(name, value) {
    const { value: before, isOwn } = this.known.get(name);
    this.edits.set(name, value);
    if (value === RESET) {
      if (!isOwn) this.edits.delete(name);
      this.revision += 1;
    } else if (isOwn && JSON.stringify(value) === JSON.stringify(before)) {
      this.edits.delete(name);
    }
    this.touched();
  }
}
