// The first page: tables, active jobs and recent jobs.

import { all, get } from "./api.js";
import { Active } from "./active.js";
import { h } from "./dom.js";
import { count, tableType } from "./format.js";
import { Incidents } from "./incidents.js";
import { Latest } from "./latest.js";
import { bucketNumber, card, field, grid, link, tableLink } from "./parts.js";
import { brief, Problems } from "./problems.js";
import { Recent } from "./recent.js";
import { Suggestions } from "./suggestions.js";
import { pauseNotice } from "./upkeep.js";

const MANY = 8;

export function overview(changed) {
  const active = new Active();
  const recent = new Recent();
  const latest = new Latest();
  const incidents = new Incidents();
  const problems = new Problems();
  const suggestions = new Suggestions();
  let tables = null;
  let pause = null;
  let wanted = "";

  async function load() {
    const [every, activeJobs, , pauseState] = await Promise.all([
      all("v1/tables"),
      active.load(),
      recent.load(),
      get("v1/pause"),
      incidents.load(),
      problems.load(),
      suggestions.load(),
    ]);
    pause = pauseState;
    tables = every.sort((a, b) => a.name.localeCompare(b.name));
    recent.learn(activeJobs);
    await latest.fill(tables);
    latest.learn([...recent.seen.values(), ...activeJobs]);
  }

  function draw() {
    if (!tables) return [];
    const names = new Map(tables.map((table) => [table.id, table.name]));
    return [
      h("h1", { class: "unseen", "data-key": "title" }, "Overview"),
      pauseNotice(pause),
      ...incidents.draw(names, active.jobs, changed),
      problems.draw(active.jobs, changed),
      ...suggestions.draw(),
      active.draw(names, changed),
      drawTables(),
      recent.draw(names, changed),
    ];
  }

  function drawTables() {
    const shown = tables.filter((table) => `${table.name} ${table.base_path}`.toLowerCase().includes(wanted));
    const search = (event) => {
      wanted = event.target.value.trim().toLowerCase();
      changed.redraw();
    };
    return card(
      "tables",
      tables.length ? `Tables (${tables.length})` : "Tables",
      tables.length > MANY && h("div", { class: "filters" }, field("Name or path", h("input", { type: "search", oninput: search }))),
      tables.length ? grid("Tables", HEADINGS, shown.map(row)) : noTables(),
    );
  }

  function row(table) {
    const own = problems.of(table.id);
    const cells = [name(table), shape(table), buckets(table), warnings(table, own), latest.draw(table.id)];
    return { key: table.id, cells };
  }

  return { title: () => "Overview", load, draw, isBusy: () => active.jobs.length > 0 };
}

const HEADINGS = ["Table", "Type", "Buckets", "Problems", "Last jobs"];

function name(table) {
  return h("div", {}, tableLink(table.id, h("strong", {}, table.name)), health(table), h("div", { class: "path" }, table.base_path));
}

function health({ incidents: { open, suspected } }) {
  if (open) return [" ", h("span", { class: "tag bad" }, count(open, "incident"))];
  return suspected > 0 && [" ", h("span", { class: "tag warn" }, `${suspected} suspected`)];
}

export function shape({ profile }) {
  return [tableType(profile), h("span", { class: "quiet" }, ` v${profile.table_version ?? "?"}`)];
}

export function buckets(table) {
  const { index, profile } = table;
  if (!index) return profile.bucket_layout?.kind === "consistent_hashing" ? "consistent hashing" : "–";
  const number = bucketNumber(table);
  if (number === index.num_buckets) return String(number);
  return [`${number} `, h("span", { class: "quiet" }, `(writers: ${index.num_buckets})`)];
}

export function pending({ profile }) {
  return profile.pending_instants ? h("span", { class: "tag warn" }, String(profile.pending_instants)) : "0";
}

function warnings({ profile }, problems) {
  const every = profile.warnings ?? [];
  if (!every.length) return brief(problems) ?? "–";
  const items = h("ul", { class: "plain" }, ...every.map((each) => h("li", {}, each)));
  const found = h("details", {}, h("summary", {}, h("span", { class: "tag warn" }, count(every.length, "warning"))), items);
  return [brief(problems), found];
}

function noTables() {
  return h(
    "p",
    { class: "quiet" },
    "No table is registered yet. ",
    h("code", {}, "POST /v1/tables"),
    " with its ",
    h("code", {}, "base_path"),
    " registers one; see the ",
    link("docs", "API documentation"),
    ".",
  );
}
