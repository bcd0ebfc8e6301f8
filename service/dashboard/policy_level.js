// The level of a policy that belongs to one table: the settings whose source it is.

import { get, send } from "./api.js";

/** The value of a setting such as `compaction.commits`. */
export function valueOf(policy, name) {
  return name.split(".").reduce((value, part) => value?.[part], policy);
}

/** The table's own settings, nested as the API takes them. */
export function ownLevel({ policy, sources }) {
  const names = Object.keys(sources).filter((name) => sources[name] === "table");
  return nested(names.map((name) => [name, valueOf(policy, name)]));
}

/** `[["compaction.commits", 5]]` becomes `{compaction: {commits: 5}}`. */
export function nested(entries) {
  const level = {};
  for (const [name, value] of entries) {
    const parts = name.split(".");
    const last = parts.pop();
    let place = level;
    for (const part of parts) place = place[part] ??= {};
    place[last] = value;
  }
  return level;
}

/** Replaces the level of the table at `path`, and returns the effective policy. */
export async function put(path, level) {
  if (Object.keys(level).length) return send("PUT", `${path}/policy`, level);
  await send("DELETE", `${path}/policy`);
  return get(`${path}/policy`);
}
