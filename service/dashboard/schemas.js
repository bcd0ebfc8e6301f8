// The API's schemas of requests, from which forms get their fields. The service generates the module that has the
// schemas.

import { SCHEMAS } from "./form_schemas.js";

/** The schemas of the members of a model by their names, without references. Null among the alternatives of a member
 * becomes `isOptional`; `isRequired` is what a request cannot leave out. */
export const membersOf = (model) => membersIn(SCHEMAS[model]);

/** The schemas of the members of an object that is itself a member. */
export const membersIn = ({ properties, required = [] }) => new Map(Object.entries(properties).map(([name, schema]) => [name, { ...simple(schema), isRequired: required.includes(name) }]));

/** The types of targets, each with its members and whether it needs them. */
export const targets = () => SCHEMAS.TargetIn["x-members"];

/** The schemas of the settings of a policy by their names, such as `compaction.commits`. */
export function settingsOf(model) {
  const flat = ([name, schema]) => (schema.type === "object" ? Object.entries(schema.properties).map(([member, its]) => [`${name}.${member}`, simple(its)]) : [[name, schema]]);
  return new Map([...membersOf(model)].flatMap(flat));
}

const whole = (schema) => (schema?.$ref ? { ...SCHEMAS[schema.$ref.split("/").at(-1)], ...schema } : schema);

function simple(schema) {
  const known = whole(schema);
  const others = known.anyOf?.filter((each) => each.type !== "null");
  const one = others?.length === 1 ? { ...whole(others[0]), description: known.description, isOptional: true } : known;
  return one.items ? { ...one, items: whole(one.items) } : one;
}
