// The policy of one table itself: the settings whose source is the table, not a pattern or a default.

import { get, getTagged, Refused, send } from "./api.js";

const CHANGED_MEANWHILE = 412;
const MOST_ATTEMPTS = 5;

/** Returns the value of a setting such as `compaction.commits`. */
export const valueOf = (policy, name) => name.split(".").reduce((value, part) => value?.[part], policy);

/** Returns the table's own settings, nested as the API expects them. */
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

/**
 * Replaces the own policy of the table at `path` by the result of `change`, which gets the effective policy. Returns
 * the new policy. If somebody else changes the policy at the same time, all begins again with their changes.
 */
export async function update(path, change) {
  for (let attempt = 1; ; attempt += 1) {
    const { document: latest, tag } = await getTagged(`${path}/policy`);
    try {
      return await put(path, change(latest), tag);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== CHANGED_MEANWHILE || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

async function put(path, level, tag) {
  if (Object.keys(level).length) return send("PUT", `${path}/policy`, level, tag);
  await send("DELETE", `${path}/policy`, undefined, tag);
  return get(`${path}/policy`);
}
