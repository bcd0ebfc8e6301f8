// The cost of reads of a table, how well its objective is kept, and the savings of its last jobs.

import { get, tablePath } from "./api.js";
import { card, pairs, time } from "./components.js";
import { h } from "./dom.js";
import { kindName, sentence } from "./format.js";

const SHOWN = 5;

export class Outcome {
  constructor(id) {
    this.path = `${tablePath(id)}/outcome`;
    this.found = null;
  }

  async load() {
    this.found = await get(this.path);
  }

  draw() {
    if (!this.found) return null;
    const { reads, cost, kept, gains } = this.found;
    return card(
      "outcome",
      "Reads",
      pairs(
        ["How often", sentence(reads.text)],
        ["Cost of a read", cost && `${cost.overhead.toFixed(2)} times that after a compaction`],
        ["Objective", kept && sentence(kept.text)],
        ["Missed", kept?.missed && [`${sentence(kept.missed)}, since `, time(kept.missed_since)]],
      ),
      gains.length > 0 && h("h3", {}, "Saved in each read"),
      gains.length > 0 && h("ul", { class: "plain" }, ...gains.slice(0, SHOWN).map(gain)),
    );
  }
}

function gain({ job_id: id, kind, created_at: at, expected_seconds: expected, saved_seconds: saved }) {
  const words = saved == null ? "not known yet" : `${saved.toPrecision(2)} s`;
  return h("li", { "data-key": id }, `${kindName(kind)}: `, words, `, expected ${expected.toPrecision(2)} s, `, time(at));
}
