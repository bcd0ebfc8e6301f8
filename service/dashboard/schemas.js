// The service's own description of its API, from which forms have their fields.

import { get } from "./api.js";

let asked = null;

async function everything() {
  asked ??= get("openapi.json").catch((error) => {
    asked = null;
    throw error;
  });
  return (await asked).components.schemas;
}

/** The schemas of the members of a model by their names, without references. Null among the alternatives of a member
 * becomes `isOptional`; `isRequired` is what a request cannot leave out. */
export async function membersOf(model) {
  const schemas = await everything();
  const { properties, required = [] } = schemas[model];
  return new Map(Object.entries(properties).map(([name, schema]) => [name, { ...simple(schema, schemas), isRequired: required.includes(name) }]));
}

/** What the document says about a model itself. */
export const modelOf = async (model) => (await everything())[model];

/** The schemas of the settings of a policy by their names, such as `compaction.commits`. */
export async function settingsOf(model) {
  const found = new Map();
  for (const [name, schema] of await membersOf(model)) {
    if (schema.type !== "object") found.set(name, schema);
    else for (const [member, its] of Object.entries(schema.properties)) found.set(`${name}.${member}`, simple(its, await everything()));
  }
  return found;
}

function simple(schema, schemas) {
  const whole = (each) => (each?.$ref ? { ...schemas[each.$ref.split("/").at(-1)], ...each } : each);
  const known = whole(schema);
  const others = known.anyOf?.filter((each) => each.type !== "null");
  const one = others?.length === 1 ? { ...whole(others[0]), description: known.description, isOptional: true } : known;
  return one.items ? { ...one, items: whole(one.items) } : one;
}
