// The state of a table: files, logs and pending instants, as of the last observed change.

import { get, Refused, tablePath } from "./api.js";
import { h } from "./dom.js";
import { bytes, count, moment, number, seconds } from "./format.js";
import { card, pairs, problem, time } from "./components.js";

export class TableState {
  constructor(id) {
    this.id = id;
    this.snapshot = null;
    this.reason = null;
  }

  async load() {
    try {
      this.snapshot = await get(`${tablePath(this.id)}/snapshot`, { partitions: 1 });
    } catch (error) {
      // A table that was registered just now has not been polled yet.
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      this.snapshot = null;
      this.reason = error.problem;
    }
  }

  draw() {
    if (!this.snapshot) return this.reason && card("standing", "Current state", problem(this.reason, "quietly"));
    const { total, watch, taken_at: taken } = this.snapshot;
    return card(
      "standing",
      "Current state",
      watch.error && problem({ title: "The table cannot be polled", detail: watch.error }, "warn"),
      pairs(
        ["Base files", `${number(total.base_files)}, ${bytes(total.base_bytes)}`],
        ["Logs", total.log_files > 0 && `${number(total.log_files)}, ${bytes(total.log_bytes)}${share(this.snapshot.log_ratio)}`],
        ["Small files", `${number(total.small_files)}, ${bytes(total.small_bytes)}`],
        ["Old versions", `${count(total.freed_files, "file")}, ${bytes(total.freed_bytes)}`],
        ["Rows in base files", total.rows != null && number(total.rows)],
        ["Partitions", number(this.snapshot.num_partitions)],
        ["Since compaction", this.snapshot.table_type === "MERGE_ON_READ" && since(this.snapshot.since_compaction)],
        ["Since cleaning", since(this.snapshot.since_cleaning)],
        ["Since clustering", since(this.snapshot.since_clustering)],
      ),
      this.#pending(),
      h("p", { class: "quiet" }, `Observed on ${moment(taken)}.`),
    );
  }

  #pending() {
    const every = this.snapshot.pending;
    if (!every.length) return null;
    return h(
      "div",
      { "data-key": "pending" },
      h("h3", {}, "Pending instants"),
      h("ul", { class: "plain" }, ...every.map((each) => h("li", { "data-key": each.requested_time }, ...instant(each)))),
    );
  }
}

function share(ratio) {
  if (ratio == null) return "";
  return ratio < 0.01 ? ", under 1 % of the base files" : `, ${Math.round(ratio * 100)} % of the base files`;
}

const since = ({ commits, bytes_written: written, at }) => [`${count(commits, "commit")}, ${bytes(written)}`, at && [", ", time(at)]];

function instant({ requested_time: requested, action, state, is_plan: isPlan, age_seconds: age, heartbeat_age_seconds: beat }) {
  return [
    h("code", {}, requested),
    ` ${action}, ${isPlan ? "planned" : state}`,
    age != null && ` for ${seconds(age)}`,
    beat != null && `, last heartbeat ${seconds(beat)} ago`,
  ];
}
