// The forms of the selection: settings of each table's own policy, and owner and tags.

import { h } from "./dom.js";
import { sentence } from "./format.js";
import { field, select } from "./components.js";
import { control } from "./controls.js";
import { nested } from "./policy_level.js";
import { rangeOf, shown } from "./quantities.js";
import { settingsOf } from "./schemas.js";

const words = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

/** Collects settings, and sends all of them in one call. `send` gets the members of the call other than the tables. */
export class SettingForm {
  constructor(redraw, send) {
    this.redraw = redraw;
    this.send = send;
    this.schemas = settingsOf("PolicyIn");
    this.name = "compaction.commits";
    this.value = undefined;
    /** The changed values by name of the setting. A value is undefined if the setting is removed, so that weaker levels
     * apply. */
    this.changes = new Map();
  }

  draw() {
    const schema = this.schemas.get(this.name);
    const usual = schema["x-default"] ?? null;
    const value = this.value === undefined ? usual : this.value;
    const choose = (event) => {
      [this.name, this.value] = [event.target.value, undefined];
      this.redraw();
    };
    const set = (entered) => {
      this.value = entered;
      this.redraw();
    };
    const add = (event, wanted) => {
      event.preventDefault();
      this.changes.set(this.name, wanted);
      this.redraw();
    };
    return h(
      "form",
      { class: "filters again", onsubmit: (event) => add(event, value), "data-key": "setting" },
      field("Setting", select({ onchange: choose }, [...this.schemas.keys()].map((each) => [each, each.replaceAll("_", " ").replace(".", ": ")]), this.name)),
      h("div", { class: "field", "data-key": this.name }, h("span", { "aria-hidden": "true" }, "Value"), control(this.name, schema, value, set, { "aria-label": `Value of ${sentence(this.name)}`, "data-key": this.name }), h("small", {}, [rangeOf(this.name, schema), `default: ${shown(this.name, usual)}`].filter(Boolean).join("; "))),
      h("div", { class: "actions" }, h("button", { class: "small" }, "Add"), h("button", { type: "button", class: "small", onclick: (event) => add(event, undefined) }, "Leave to patterns and defaults")),
      this.changes.size > 0 && this.#list(),
    );
  }

  #list() {
    const changes = [...this.changes];
    const words = ([name, value]) => `${name}: ${value === undefined ? "from patterns and defaults" : shown(name, value)}`;
    const drop = (name) => {
      this.changes.delete(name);
      this.redraw();
    };
    const apply = () => {
      const kept = changes.filter(([, value]) => value !== undefined);
      const unset = changes.filter(([, value]) => value === undefined).map(([name]) => name);
      void this.send({ ...(kept.length > 0 && { policy: nested(kept) }), unset }, changes.map(words).join("; "));
    };
    return h(
      "div",
      { class: "line wide", "data-key": "changes" },
      ...changes.map((each) => h("span", { class: "tag", "data-key": each[0] }, words(each), " ", h("button", { type: "button", class: "link", "aria-label": `Do not change ${each[0]}`, onclick: () => drop(each[0]) }, "×"))),
      h("button", { type: "button", class: "small primary", onclick: apply }, "Apply"),
    );
  }
}

export class LabelForm {
  constructor(redraw, send) {
    this.send = send;
  }

  draw() {
    const save = (event) => {
      event.preventDefault();
      const data = new FormData(event.target);
      const [owner, tags, gone] = ["owner", "tags", "remove"].map((name) => words(data.get(name)));
      const pairs = tags.map((each) => each.split("=")).map(([key, ...rest]) => [key.trim(), rest.join("=").trim()]);
      const said = [owner[0] && `owner ${owner[0]}`, tags.length > 0 && `with ${tags.join(", ")}`, gone.length > 0 && `without ${gone.join(", ")}`].filter(Boolean);
      if (said.length) void this.send({ ...(owner[0] && { owner: owner[0] }), tags: Object.fromEntries(pairs), remove_tags: gone }, said.join(", "));
    };
    const text = (name, placeholder) => h("input", { name, placeholder, maxlength: 1000, spellcheck: "false", autocomplete: "off" });
    return h(
      "form",
      { class: "filters again", onsubmit: save, "data-key": "labels" },
      field("Owner", text("owner", "unchanged")),
      field("Add tags", text("tags", "team=shop, pii")),
      field("Remove tags", text("remove", "tier")),
      h("div", { class: "actions" }, h("button", { class: "small" }, "Declare")),
    );
  }
}
