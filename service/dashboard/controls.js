// A control for a value, by its schema in the document of the API.

import { h } from "./dom.js";
import { sentence } from "./format.js";
import { quantity, quantityIn, unitsOf } from "./quantities.js";

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Returns the control. `set` gets each entered value. The control itself reports an invalid value. `properties` have
 * the label and the key. */
export function control(name, schema, value, set, properties) {
  const accept = (read) => (event) => {
    const [entered, wrong] = read(event.target.value);
    event.target.setCustomValidity(wrong ?? "");
    if (wrong) event.target.reportValidity();
    else set(entered);
  };
  const plain = { ...properties, spellcheck: "false", autocomplete: "off" };
  const input = (text, read, more = {}) => h("input", { ...plain, value: text, onchange: accept(read), placeholder: schema.isOptional ? "none" : null, required: Boolean(schema.isRequired), ...more });
  if (schema.enum) return chosen(schema.enum.map((each) => [each, each]), schema, value, accept((text) => [text || null]), properties);
  if (schema.type === "boolean") return chosen([["true", "yes"], ["false", "no"]], schema, value, accept((text) => [text === "" ? null : text === "true"]), properties);
  if (schema.type === "integer" || schema.type === "number") return numeric(unitsOf(name), schema, value, input);
  if (schema.format === "date-time") return input(local(value), (text) => (text ? [new Date(text).toISOString()] : [null, "A time is needed."]), { type: "datetime-local" });
  if (schema.type === "string") return input(value ?? "", (text) => [text.trim() === "" && schema.isOptional ? null : text.trim()], { maxlength: schema.maxLength });
  if (schema.items?.enum) return several(schema.items.enum, value, set, properties);
  if (schema.items?.properties?.start) return windows(value ?? [], set, properties);
  if (schema.items?.type === "string" && (value ?? []).every((each) => typeof each === "string")) {
    return input((value ?? []).join(", "), (text) => [text.split(",").map((each) => each.trim()).filter(Boolean)], { placeholder: "separated by commas" });
  }
  if (schema.additionalProperties?.type === "string") return headers(value ?? {}, accept, plain);
  return h("textarea", { ...plain, rows: 2, onchange: accept(json) }, JSON.stringify(value));
}

function chosen(choices, { isOptional }, value, onchange, properties) {
  const all = isOptional ? [["", "none"], ...choices] : choices;
  return h("select", { ...properties, onchange }, ...all.map(([each, words]) => h("option", { value: each, selected: String(value ?? "") === each }, words)));
}

function numeric(units, { type, minimum, exclusiveMinimum, maximum, isOptional }, value, input) {
  const nothing = isOptional ? [null] : [null, "A number is needed."];
  if (!units) {
    const read = (text) => (text === "" ? nothing : Number.isFinite(Number(text)) ? [Number(text)] : [null, "This is not a number."]);
    return input(value ?? "", read, { type: "number", min: minimum ?? exclusiveMinimum, max: maximum, step: type === "integer" ? 1 : "any", required: !isOptional });
  }
  const names = units.map(([unit]) => unit).join(", ");
  const read = (text) => {
    if (text.trim() === "") return nothing;
    const found = quantityIn(units, text);
    if (found === null) return [null, `A number with a unit is needed: ${names}.`];
    const isOutside = found < (minimum ?? exclusiveMinimum ?? found) || found > (maximum ?? found);
    return isOutside ? [null, `The number must be ${quantity(units, minimum ?? 0)} to ${quantity(units, maximum ?? Infinity)}.`.replace(/ to ∞.*/, " or more.")] : [found];
  };
  return input(value == null ? "" : quantity(units, value), read, { title: `Units: ${names}` });
}

/** Returns a moment in the form that the browser's control takes, in the browser's time zone. */
export function local(value) {
  if (!value) return "";
  const at = new Date(value);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function several(words, value, set, { "aria-label": label, "data-key": key }) {
  const isMany = words.length > 8;
  const picked = value ?? [];
  const toggle = (word) => (event) => set(words.filter((each) => (each === word ? event.target.checked : picked.includes(each))));
  const boxes = words.map((word) => h("label", { class: "pick", "data-key": word }, h("input", { type: "checkbox", checked: picked.includes(word), onchange: toggle(word) }), ` ${word}`));
  const group = h("div", { class: "picks", role: "group", "aria-label": label, "data-key": key }, ...boxes);
  return isMany ? h("details", { "data-key": key }, h("summary", {}, picked.length ? picked.join(", ") : "all"), group) : group;
}

function windows(value, set, { "aria-label": label, "data-key": key }) {
  const change = (index, changes) => set(value.map((each, at) => (at === index ? { ...each, ...changes } : each)));
  const at = (index, side, words) =>
    h("input", { type: "time", required: true, value: value[index][side], "aria-label": `${words} ${index + 1}`, onchange: (event) => event.target.value && change(index, { [side]: event.target.value }) });
  const day = (index, each) => {
    const days = value[index].days ?? [];
    const toggle = (event) => change(index, { days: DAYS.filter((other) => (other === each ? event.target.checked : days.includes(other))) });
    return h("label", { class: "pick", "data-key": each }, h("input", { type: "checkbox", checked: days.includes(each), onchange: toggle }), ` ${sentence(each)}`);
  };
  const rows = value.map((_, index) =>
    h(
      "div",
      { class: "window", "data-key": `window ${index}` },
      h("span", { class: "line" }, at(index, "start", "Start of window"), "to", at(index, "end", "End of window"), h("button", { type: "button", class: "small", "aria-label": `Remove window ${index + 1}`, onclick: () => set(value.filter((_other, place) => place !== index)) }, "Remove")),
      h("span", { class: "picks", role: "group", "aria-label": `Days of window ${index + 1}; none: every day` }, ...DAYS.map((each) => day(index, each)), !value[index].days?.length && h("small", {}, "every day")),
    ),
  );
  const add = () => set([...value, { start: "22:00", end: "04:00", days: [] }]);
  return h("div", { class: "windows", role: "group", "aria-label": label, "data-key": key }, ...rows, h("button", { type: "button", class: "small", "data-key": "add", onclick: add }, "Add a window"));
}

function headers(value, accept, plain) {
  const read = (text) => {
    const lines = text.split("\n").filter((line) => line.trim()).map((line) => line.split(":"));
    return lines.every(([, ...rest]) => rest.length) ? [Object.fromEntries(lines.map(([name, ...rest]) => [name.trim(), rest.join(":").trim()]))] : [null, "One per line: Name: value"];
  };
  return h("textarea", { ...plain, rows: 2, placeholder: "Name: value", onchange: accept(read) }, Object.entries(value).map(([name, each]) => `${name}: ${each}`).join("\n"));
}

function json(text) {
  try {
    return [JSON.parse(text)];
  } catch {
    return [null, "This is not JSON."];
  }
}
