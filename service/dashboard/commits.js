// The last commits of a table, by writers and table services.

import { get } from "./api.js";
import { h } from "./dom.js";
import { bytes, number, sentence } from "./format.js";
import { card, grid, time } from "./components.js";

const SHOWN = 10;
const HEADINGS = ["Commit", "Instant", "When", "Rows", "Bytes", "Partitions"];

export class Commits {
  constructor(tableId) {
    this.tableId = tableId;
    this.items = null;
  }

  async load() {
    this.items = (await get("v1/commits", { table_id: this.tableId, limit: SHOWN })).items;
  }

  draw() {
    if (!this.items) return null;
    return card(
      "commits",
      "Last commits",
      grid("Last commits", HEADINGS, this.items.map((each) => ({ key: String(each.id), cells: cells(each) })), "No commits yet."),
    );
  }
}

function cells(commit) {
  const { operation, action } = commit;
  const name = sentence((operation ?? action).toLowerCase());
  return [
    [name, commit.schema_changed && [" ", h("span", { class: "tag warn" }, "new schema")]],
    h("code", {}, commit.requested_time),
    time(commit.completed_at),
    commit.rows_written == null ? "–" : number(commit.rows_written),
    commit.bytes_written == null ? "–" : bytes(commit.bytes_written),
    number(commit.partitions.length),
  ];
}
