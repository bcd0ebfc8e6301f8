// The files of a table: buckets of each partition as a heat map, and base files by size.

import { get, tablePath } from "./api.js";
import { asTable, box, drawing, tracks, WIDTH } from "./chart.js";
import { h } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { card } from "./components.js";

const MOST_PARTITIONS = 30;
// If there are more buckets, several share a cell, which shows the largest of them.
const MOST_CELLS = 64;
const SHADES = 8;

export class Layout {
  constructor(tableId) {
    this.path = `${tablePath(tableId)}/buckets`;
    this.snapshot = null;
    this.buckets = null;
    this.asOf = null;
  }

  /** Requests the buckets only if the snapshot has changed. */
  async load(snapshot) {
    this.snapshot = snapshot;
    if (!snapshot || this.asOf === snapshot.taken_at) return;
    this.buckets = snapshot.num_buckets ? await get(this.path, { partitions: MOST_PARTITIONS }) : null;
    this.asOf = snapshot.taken_at;
  }

  draw() {
    if (!this.snapshot) return null;
    const map = this.buckets && heatMap(this.buckets);
    const sizes = histogram(this.snapshot);
    if (!map && !sizes) return null;
    return card("layout", "Files", h("div", { class: "halves" }, sizes, map));
  }
}

function histogram({ base_file_sizes: classes, small_file_bytes: small }) {
  const most = Math.max(...classes.map((each) => each.files), 0);
  if (!most) return null;
  const named = classes.map((each, index) => ({ ...each, name: range(classes[index - 1]?.below_bytes, each.below_bytes) }));
  const first = named.findIndex((each) => each.files);
  const last = named.findLastIndex((each) => each.files);
  const rows = named.slice(first, last + 1).map(({ name, files, below_bytes: below }) => ({
    key: name,
    name,
    picture: drawing(
      "bar",
      `${name}: ${count(files, "base file")}`,
      files > 0 && box(below && below <= small ? "small" : "fine", 0, Math.max(4, (files / most) * WIDTH), `${name}: ${count(files, "base file")}`),
    ),
    words: number(files),
  }));
  return h(
    "section",
    { "data-key": "sizes", class: "sizes", "aria-label": "Base files by size" },
    h("h3", {}, "Base files by size"),
    tracks(rows),
    h("p", { class: "quiet" }, `Files below ${bytes(small)} count as small.`),
  );
}

function range(from, below) {
  if (!from) return `below ${bytes(below)}`;
  return below ? `${bytes(from)} to ${bytes(below)}` : `${bytes(from)} and more`;
}

function heatMap({ partitions, num_partitions: many }) {
  const most = Math.max(...partitions.flatMap((each) => each.buckets.map((bucket) => bucket.bytes)), 0);
  if (!most) return null;
  const shared = Math.max(...partitions.map((each) => Math.ceil(each.num_buckets / MOST_CELLS)));
  const rows = partitions.map((each) => {
    const name = each.path || "the table";
    const label = `${name}: ${count(each.num_buckets, "bucket")}, ${bytes(each.bytes)}; the largest is ${each.skew ?? 0} times the mean`;
    return { key: each.path, name, picture: drawing("heat", label, ...cells(each, most)), words: `${bytes(each.bytes)}, ${(each.skew ?? 0).toFixed(1)} ×` };
  });
  return h(
    "section",
    { "data-key": "heat", class: "heat-map", "aria-label": "Buckets of each partition" },
    h("h3", {}, "Buckets of each partition"),
    tracks(rows),
    h("p", { class: "quiet" }, "Bytes in a bucket: ", legend(), ` 0 to ${bytes(most)}. The last column: bytes of the partition, and the largest bucket in multiples of the mean.`),
    shared > 1 && h("p", { class: "quiet" }, `A cell shows the largest of up to ${shared} buckets.`),
    many > partitions.length && h("p", { class: "quiet" }, `The largest ${partitions.length} of ${number(many)} partitions.`),
    asTable("Buckets of each partition", ["Partition", "Buckets", "Bytes", "Largest", "Largest by mean"], partitions.map(row)),
  );
}

function cells({ buckets, num_buckets: many }, most) {
  const shown = Math.min(many, MOST_CELLS);
  const largest = Array.from({ length: shown }, () => null);
  for (const bucket of buckets) {
    const cell = Math.min(shown - 1, Math.floor((bucket.bucket * shown) / many));
    if (!largest[cell] || largest[cell].bytes < bucket.bytes) largest[cell] = bucket;
  }
  const room = WIDTH / shown;
  return largest.map((bucket, cell) => {
    const shade = bucket ? Math.max(1, Math.ceil((bucket.bytes / most) * SHADES)) : 0;
    return box(`shade-${shade}`, cell * room, room, bucket ? `Bucket ${bucket.bucket}: ${bytes(bucket.bytes)}` : "empty");
  });
}

function legend() {
  const room = WIDTH / (SHADES + 1);
  return drawing("heat-legend", "From empty to the largest", ...Array.from({ length: SHADES + 1 }, (_, shade) => box(`shade-${shade}`, shade * room, room)));
}

function row(each) {
  const largest = each.buckets.reduce((one, other) => (one.bytes >= other.bytes ? one : other), { bytes: 0, bucket: "–" });
  return { key: each.path, cells: [each.path || "the table", number(each.num_buckets), bytes(each.bytes), `${largest.bucket}: ${bytes(largest.bytes)}`, String(each.skew ?? "–")] };
}
