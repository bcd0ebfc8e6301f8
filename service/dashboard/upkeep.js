// Automatic jobs of a table: the last decisions with their reasons, and the policy.

import { get, tablePath } from "./api.js";
import { Decisions } from "./decisions.js";
import { h } from "./dom.js";
import { bytes, count, seconds } from "./format.js";
import { card, link, pairs, problem } from "./components.js";
import { pauseOfTable } from "./pause.js";
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
      ["Compaction", compaction(policy)],
      ["Cleaning", cleaning(policy)],
      ["Clustering", clustering(policy)],
      ["Bucket expansion", expansion(policy)],
      ["Bucket contraction", contraction(policy)],
      ["Archival", archival(policy)],
      ["Partition TTL", partitionTtl(policy)],
      ["Sync to a metastore", sync(policy)],
      ["Repair", REPAIR[policy.repair.mode]],
      ["Rollback of dead writers", policy.rollback.enabled ? `after ${seconds(policy.rollback.after_seconds)} without a heartbeat` : "off"],
      ["Diagnosis", examination(policy, policy.diagnosis)],
      ["Audit", examination(policy, policy.audit)],
    ),
    changedSettings.length > 0 &&
      h(
        "details",
        { "data-key": "differing" },
        h("summary", {}, `${count(changedSettings.length, "setting")} other than the default`),
        pairs(...changedSettings.map(([name, source]) => [name, [h("code", {}, shown(policy, name)), ` from ${source}`]])),
      ),
  ];
}

function compaction({ compaction: its, time_zone: zone }) {
  if (!its.enabled) return "off";
  const limits = [its.limit_bytes != null && bytes(its.limit_bytes), its.limit_file_groups != null && count(its.limit_file_groups, "file group")];
  const limit = limits.some(Boolean) && `, ${limits.filter(Boolean).join(" and ")} at once`;
  if (its.cron) return [calendar(its, zone), limit];
  return [thresholds(its), its.log_ratio != null && `, or logs of ${its.log_ratio} times the base files`, limit];
}

function cleaning({ cleaning: its, time_zone: zone }) {
  if (!its.enabled) return "off";
  return `${its.cron ? calendar(its, zone) : thresholds(its)}; keeps ${count(its.retain, RETAINED[its.policy])}`;
}

function archival({ archival: its, time_zone: zone }) {
  if (!its.enabled) return "off";
  return `${its.cron ? calendar(its, zone) : `above ${count(its.commits, "commit")} on the timeline`}; keeps ${its.retain}`;
}

function partitionTtl({ partition_ttl: its, time_zone: zone }) {
  if (!its.enabled) return "off";
  if (its.days_retain == null) return "off: `days_retain` is not set";
  const since = its.strategy === "KEEP_BY_TIME" ? "their last modification" : "their creation";
  return `${its.cron ? calendar(its, zone) : `every ${seconds(its.seconds)}`}; keeps partitions ${count(its.days_retain, "day")} since ${since}`;
}

function examination({ time_zone: zone }, its) {
  if (!its.enabled) return "off";
  return `${its.cron ? calendar(its, zone) : `every ${seconds(its.seconds)}`}${its.rows ? ", with all rows" : ""}`;
}

function sync({ sync: its, time_zone: zone }) {
  if (!its.enabled || its.metastore_uris == null) return "off";
  return `${its.cron ? calendar(its, zone) : "after each commit"}, to ${its.database} of ${its.metastore_uris}`;
}

function clustering({ clustering: its, time_zone: zone }) {
  if (!its.enabled) return "off";
  const reasons = [
    its.unsorted_bytes != null && (its.sort_by.length > 0 || its.expansion_factor) && `${bytes(its.unsorted_bytes)} unsorted`,
    its.small_file_share != null && `${Math.round(its.small_file_share * 100)} % small files`,
  ];
  const when = its.cron ? calendar(its, zone) : `at ${reasons.filter(Boolean).join(" or ")}`;
  const what = its.sort_by.length ? `by ${its.sort_by.join(", ")}` : its.expansion_factor ? "in its order" : "merges small files";
  return `${what}${its.expansion_factor ? `, ready for ${its.expansion_factor} times the buckets` : ""}, ${when}`;
}

function expansion({ bucket_expansion: its, time_zone: zone }) {
  if (its.mode === "off") return "off";
  const when = its.cron ? `, looked at ${calendar(its, zone)}` : "";
  return `${its.mode === "auto" ? "done" : "suggested"} above ${bytes(its.max_bucket_bytes)} in a bucket${when}`;
}

function contraction({ bucket_contraction: its, time_zone: zone }) {
  if (its.mode === "off") return "off";
  const when = its.cron ? `, looked at ${calendar(its, zone)}` : "";
  return `${its.mode === "auto" ? "done" : "suggested"} below ${bytes(its.min_bucket_bytes)} in an average bucket${when}`;
}

function thresholds({ trigger, commits, seconds: span }) {
  const words = { commits: count(commits, "commit"), seconds: seconds(span) };
  if (trigger === "both") return `after ${words.commits} and ${words.seconds}`;
  if (trigger === "either") return `after ${words.commits} or ${words.seconds}`;
  return `after ${words[trigger]}`;
}

const calendar = ({ cron }, zone) => `at ${cron} (${zone})`;

const window = ({ start, end, days }) => [days.join(", "), `${start}–${end}`].filter(Boolean).join(" ");

/** The value of a setting such as `compaction.commits`. */
function shown(policy, name) {
  return JSON.stringify(name.split(".").reduce((value, part) => value[part], policy));
}
