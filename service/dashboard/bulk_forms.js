// The forms of the selection: a setting of each table's own policy, and owner and tags.

import { h } from "./dom.js";
import { sentence } from "./format.js";
import { field, select } from "./components.js";
import { control } from "./controls.js";
import { nested } from "./policy_level.js";
import { rangeOf, shown } from "./quantities.js";
import { settingsOf } from "./schemas.js";

const words = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

/** `send` gets the members of the call, besides the tables. */
export class SettingForm {
  constructor(redraw, send) {
    this.redraw = redraw;
    this.send = send;
    this.schemas = settingsOf("PolicyIn");
    this.name = "compaction.commits";
    this.value = undefined;
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
    const save = (event) => {
      event.preventDefault();
      void this.send({ policy: nested([[this.name, value]]) }, `${this.name}: ${shown(this.name, value)}`);
    };
    const leave = () => this.send({ unset: [this.name] }, `${this.name}: as the level below says`);
    return h(
      "form",
      { class: "filters again", onsubmit: save, "data-key": "setting" },
      field("Setting", select({ onchange: choose }, [...this.schemas.keys()].map((each) => [each, each.replaceAll("_", " ").replace(".", ": ")]), this.name)),
      h("div", { class: "field", "data-key": this.name }, h("span", { "aria-hidden": "true" }, "Value"), control(this.name, schema, value, set, { "aria-label": `Value of ${sentence(this.name)}`, "data-key": this.name }), h("small", {}, [rangeOf(this.name, schema), `default: ${shown(this.name, usual)}`].filter(Boolean).join("; "))),
      h("div", { class: "actions" }, h("button", { class: "small" }, "Set"), h("button", { type: "button", class: "small", onclick: leave }, "Leave to patterns and defaults")),
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
