// Automatic jobs of a table: the last decisions with their reasons, and the policy.

import { get, tablePath } from "./api.js";
import { Decisions } from "./decisions.js";
import { h } from "./dom.js";
import { bytes, count, listed, seconds } from "./format.js";
import { card, link, pairs, problem } from "./components.js";
import { pauseOfTable } from "./pause.js";
import { valueOf } from "./policy_level.js";
import { may } from "./role.js";

const REPAIR = { auto: "at once", suggest: "suggested", off: "off" };
const RETAINED = {
  KEEP_LATEST_COMMITS: "commit",
  KEEP_LATEST_BY_HOURS: "hour",
  KEEP_LATEST_FILE_VERSIONS: "file version",
};

export class Upkeep {
  constructor(tableId) {
    this.id = tableId;
    this.path = tablePath(tableId);
    this.decisions = new Decisions(tableId);
    this.effective = null;
  }

  async load() {
    [this.effective] = await Promise.all([get(`${this.path}/policy`), this.decisions.load()]);
  }

  draw(changed) {
    if (!this.effective) return null;
    const warnings = this.decisions.current.filter((each) => each.warning);
    return card(
      "upkeep",
      "Automatic jobs",
      ...warnings.map((each) => problem({ title: each.warning }, "warn")),
      this.decisions.draw(changed),
      ...policy(this.effective),
      h(
        "div",
        { class: "actions", "data-key": "actions" },
        link(`#/tables/${encodeURIComponent(this.id)}/policy`, may("operator") ? "Edit the policy" : "All settings"),
        may("operator") && pauseOfTable(this.path, this.effective, changed),
      ),
    );
  }
}

/** The sections of the policy. Each has a heading, its name in the policy, and a function that describes the section
 * while it is switched on. `calendar` is the cron expression in words, if there is one. */
const SECTIONS = [
  ["Compaction", "compaction", compaction],
  ["Cleaning", "cleaning", (its, calendar) => `${calendar ?? thresholds(its)}; keeps ${count(its.retain, RETAINED[its.policy])}`],
  ["Clustering", "clustering", clustering],
  ["Bucket expansion", "bucket_expansion", (its, calendar) => rescale(its, `above ${bytes(its.max_bucket_bytes)} in a bucket`, calendar)],
  ["Bucket contraction", "bucket_contraction", (its, calendar) => rescale(its, `below ${bytes(its.min_bucket_bytes)} in an average bucket`, calendar)],
  ["Bucket resize", "bucket_resize", (its, calendar) => rescale(its, `above ${bytes(its.split_bytes)} in a bucket, or at most ${bytes(its.merge_bytes)} in neighbours`, calendar)],
  ["Archival", "archival", (its, calendar) => `${calendar ?? `above ${count(its.commits, "commit")} on the timeline`}; keeps ${its.retain}`],
  ["Metadata table", "metadata_table", (its, calendar) => `compacted ${calendar ?? `after ${count(its.commits, "commit")}`}`],
  ["Partition TTL", "partition_ttl", partitionTtl],
  ["Sync to a metastore", "sync", (its, calendar) => (its.metastore_uris == null ? "off" : `${calendar ?? "after each commit"}, to ${its.database} of ${its.metastore_uris}`)],
  ["Repair", "repair", (its) => REPAIR[its.mode]],
  ["Rollback of dead writers", "rollback", (its) => `after ${seconds(its.after_seconds)} without a heartbeat`],
  ["Diagnosis", "diagnosis", examination],
  ["Audit", "audit", examination],
];

function policy({ policy, sources }) {
  const changedSettings = Object.entries(sources).filter(([, source]) => source !== "default");
  return [
    h("h3", {}, "Policy"),
    pairs(
      ["Paused", policy.paused && "yes"],
      ["Windows", policy.windows.length > 0 && `${policy.windows.map(window).join("; ")} (${policy.time_zone})`],
      ["Priority", policy.priority !== 0 && String(policy.priority)],
      ["Time limit of an attempt", policy.timeout_seconds != null && seconds(policy.timeout_seconds)],
      ["Worker group", policy.worker_group !== "default" && policy.worker_group],
      ...SECTIONS.filter(([, section]) => !isOff(policy[section])).map(([name, section, words]) => [name, words(policy[section], calendar(policy, section))]),
      ["Off", listed(SECTIONS.filter(([, section]) => isOff(policy[section])).map(([name]) => name))],
    ),
    changedSettings.length > 0 &&
      h(
        "details",
        { "data-key": "differing" },
        h("summary", {}, `${count(changedSettings.length, "setting")} other than the default`),
        pairs(...changedSettings.map(([name, source]) => [name, [h("code", {}, JSON.stringify(valueOf(policy, name))), ` from ${source}`]])),
      ),
  ];
}

const isOff = ({ enabled, mode }) => enabled === false || mode === "off";

/** Returns the cron expression in words; undefined without one. */
function calendar(policy, section) {
  const { cron } = policy[section];
  return cron ? `at ${cron} (${policy.time_zone})` : undefined;
}

function compaction(its, calendar) {
  const limits = [its.limit_bytes != null && bytes(its.limit_bytes), its.limit_file_groups != null && count(its.limit_file_groups, "file group")];
  const limit = limits.some(Boolean) && `, ${limits.filter(Boolean).join(" and ")} at once`;
  return [calendar ?? thresholds(its), !calendar && its.log_ratio != null && `, or logs of ${its.log_ratio} times the base files`, limit];
}

function partitionTtl(its, calendar) {
  if (its.days_retain == null) return "off: `days_retain` is not set";
  const since = its.strategy === "KEEP_BY_TIME" ? "their last modification" : "their creation";
  return `${calendar ?? `every ${seconds(its.seconds)}`}; keeps partitions ${count(its.days_retain, "day")} since ${since}`;
}

function examination(its, calendar) {
  return `${calendar ?? `every ${seconds(its.seconds)}`}${its.rows ? ", with all rows" : ""}`;
}

function clustering(its, calendar) {
  const reasons = [
    its.unsorted_bytes != null && (its.sort_by.length > 0 || its.expansion_factor) && `${bytes(its.unsorted_bytes)} unsorted`,
    its.small_file_share != null && `${Math.round(its.small_file_share * 100)} % small files`,
  ];
  const what = its.sort_by.length ? `by ${its.sort_by.join(", ")}` : its.expansion_factor ? "in its order" : "merges small files";
  const room = its.expansion_factor ? `, ready for ${its.expansion_factor} times the buckets` : "";
  return `${what}${room}, ${calendar ?? `at ${reasons.filter(Boolean).join(" or ")}`}`;
}

function rescale({ mode }, where, calendar) {
  return `${mode === "auto" ? "done" : "suggested"} ${where}${calendar ? `, checked ${calendar}` : ""}`;
}

function thresholds({ trigger, commits, seconds: span }) {
  const words = { commits: count(commits, "commit"), seconds: seconds(span) };
  if (trigger === "both") return `after ${words.commits} and ${words.seconds}`;
  if (trigger === "either") return `after ${words.commits} or ${words.seconds}`;
  return `after ${words[trigger]}`;
}

const window = ({ start, end, days }) => [days.join(", "), `${start}–${end}`].filter(Boolean).join(" ");
