// The fields of a form for the members of a model. The texts come from the API's document.

import { h } from "./dom.js";
import { described, sentence } from "./format.js";
import { field } from "./components.js";
import { control } from "./controls.js";
import { membersIn } from "./schemas.js";

/** Returns the fields. `values` has the entered values; `set` gets the name of a member and its new value. A new
 * `revision` draws the controls anew. */
export function schemaFields(members, values, set, revision = 0) {
  return [...members].map(([name, schema]) => {
    const label = sentence(name);
    const value = values[name] ?? schema.default ?? schema["x-default"] ?? null;
    if (schema.properties) return part(name, label, schema, value, set, revision);
    const drawn = control(name, schema, value, (entered) => set(name, entered), { "aria-label": label, "data-key": `${name} ${revision}` });
    const hint = schema.description && `${described(schema)}.`;
    const isGroup = drawn.getAttribute("role") === "group" || drawn.nodeName === "DETAILS";
    return isGroup ? h("div", { class: "field", "data-key": label }, h("span", { "aria-hidden": "true" }, label), drawn, hint && h("small", {}, hint)) : field(label, drawn, hint);
  });
}

/** Returns the fields of an optional object, which has members of its own. */
function part(name, label, schema, value, set, revision) {
  const members = membersIn(schema);
  // A select without an empty choice shows its first choice, so that choice is also the value.
  const shown = [...members].filter(([, each]) => each.isRequired && each.enum).map(([member, each]) => [member, each.enum[0]]);
  const toggle = (event) => set(name, event.target.checked ? Object.fromEntries(shown) : null);
  return h(
    "fieldset",
    { class: "plain", "data-key": `${name} ${revision}` },
    h("legend", {}, label),
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: value !== null, onchange: toggle }), ` ${described(schema) ?? label}`),
    value !== null && schemaFields(members, value, (member, entered) => set(name, { ...value, [member]: entered }), revision),
  );
}
