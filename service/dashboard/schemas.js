// The API's schemas of requests, from which forms get their fields. The service generates the module `form_schemas.js`.

import { SCHEMAS } from "./form_schemas.js";

/** Returns the schemas of the members of a model by their names, without references. A member that may be null has
 * `isOptional`; a member that a request cannot leave out has `isRequired`. */
export const membersOf = (model) => membersIn(SCHEMAS[model]);

/** Returns the schemas of the members of an object that is itself a member. */
export const membersIn = ({ properties, required = [] }) => new Map(Object.entries(properties).map(([name, schema]) => [name, { ...simple(schema), isRequired: required.includes(name) }]));

/** Returns the types of targets. Each has its members, and whether they are required. */
export const targets = () => SCHEMAS.TargetIn["x-members"];

/** Returns the schemas of the settings of a policy by their names, such as `compaction.commits`. */
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
