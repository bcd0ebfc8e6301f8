// The declared and the detected facts about a table.

import { h } from "./dom.js";
import { listed, moment, tableType } from "./format.js";
import { bucketNumber, card, pairs, time } from "./components.js";

/** Returns the facts about the table's structure. */
export function shapeFacts(table, action) {
  const { profile, index } = table;
  const layout = profile.bucket_layout ?? {};
  return card(
    "facts",
    "The table",
    pairs(
      ["Type", shape(table)],
      ["Partitioned by", listed(profile.partition_fields) ?? "not partitioned"],
      ["Record key", listed(profile.record_key_fields)],
      ["Ordering", listed(profile.ordering_fields)],
      ["Buckets", index && [buckets(table), ` by ${index.hash_fields.join(", ")}`]],
      ["Bucket index", !index && (layout.kind ?? "unknown").replaceAll("_", " ")],
      ["Hashing config", layout.hashing_config],
      ["File groups", layout.file_groups == null ? null : String(layout.file_groups)],
      ["Pending instants", pending(table)],
    ),
    asOf(table),
    action,
  );
}

/** Returns the facts about writers, readers and the lock. */
export function writerFacts(table) {
  const { lock, writers, readers } = table;
  return card(
    "writers",
    "Writers and readers",
    pairs(
      ["Lock", lock.provider],
      ["Writers", writers.stopped ? "stopped" : writers.hudi_version ? `Hudi ${writers.hudi_version}` : "not declared"],
      ["Readers", readers.hudi_version && `Hudi ${readers.hudi_version}`],
      ["Reads a day", readers.reads_per_day],
      ["Engines", listed(writers.engines) ?? "not declared"],
      ["Flink job", writers.flink && `${writers.flink.job} at ${writers.flink.rest_url}`],
      ["Detected", detected(writers.detected)],
    ),
    asOf(table),
  );
}

const asOf = (table) => h("p", { class: "quiet" }, `These are the facts at the registration or the last change, ${moment(table.updated_at)}.`);

const shape = ({ profile }) => [tableType(profile), h("span", { class: "quiet" }, ` v${profile.table_version ?? "?"}`)];

function buckets(table) {
  const { index, profile } = table;
  if (!index) return profile.bucket_layout?.kind === "consistent_hashing" ? "consistent hashing" : "–";
  const shown = bucketNumber(table);
  if (shown === index.num_buckets) return String(shown);
  return [`${shown} `, h("span", { class: "quiet" }, `(writers: ${index.num_buckets})`)];
}

const pending = ({ profile }) => (profile.pending_instants ? h("span", { class: "tag warn" }, String(profile.pending_instants)) : "0");

/** Returns the latest evidence of each engine. */
function detected(sightings) {
  const every = Object.entries(sightings ?? {});
  if (!every.length) return null;
  const one = ([engine, { last_seen: at, instant, evidence }]) =>
    h("li", { "data-key": engine }, engine, ", last ", time(at), instant && [" at ", h("code", {}, instant)], `: ${evidence}`);
  return h("ul", { class: "plain" }, ...every.map(one));
}

export function columns({ profile }) {
  if (!profile.columns?.length) return null;
  return h(
    "details",
    { class: "card", "data-key": "schema" },
    h("summary", {}, `Columns (${profile.columns.length})`),
    pairs(...profile.columns.map((column) => [column.name, h("code", {}, column.type)])),
  );
}
