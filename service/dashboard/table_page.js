// One table: its properties, its jobs, and a form to start one.

import { get, post, tablePath } from "./api.js";
import { Active } from "./active.js";
import { Commits } from "./commits.js";
import { Declarations } from "./declarations.js";
import { h } from "./dom.js";
import { listed, moment } from "./format.js";
import { Incidents } from "./incidents.js";
import { jobForm } from "./job_form.js";
import { TimelineChart } from "./timeline_chart.js";
import { Latest } from "./last_jobs.js";
import { Layout } from "./layout.js";
import { Lock } from "./lock.js";
import { buckets, pending, shape } from "./overview.js";
import { card, pairs, problem, time } from "./components.js";
import { Problems } from "./problems.js";
import { Recent } from "./recent.js";
import { may } from "./role.js";
import { TableState } from "./table_state.js";
import { Trend } from "./trend.js";
import { Upkeep } from "./upkeep.js";
import { WriterOptions } from "./writer_options.js";

export function tablePage(id, changed) {
  const active = new Active({ table_id: id });
  const recent = new Recent({ table_id: id });
  const latest = new Latest();
  const incidents = new Incidents(id);
  const problems = new Problems({ table_id: id });
  const commits = new Commits(id);
  const state = new TableState(id);
  const timeline = new TimelineChart(id);
  const trend = new Trend(id);
  const layout = new Layout(id);
  const lock = new Lock(id, changed);
  const upkeep = new Upkeep(id);
  const form = jobForm(changed);
  const options = new WriterOptions(id, changed);
  const declarations = new Declarations(id, changed);
  let table = null;

  async function load() {
    // The storage is read for it, which may take long.
    void lock.load();
    const [found, activeJobs] = await Promise.all([
      get(tablePath(id)),
      active.load(),
      recent.load(),
      commits.load(),
      state.load().then(() => Promise.all([timeline, trend, layout].map((each) => each.load(state.snapshot)))),
      upkeep.load(),
      incidents.load(),
      problems.load(),
    ]);
    table = found;
    recent.learn(activeJobs);
    await latest.fill([table]);
    latest.learn([...recent.seen.values(), ...activeJobs]);
  }

  function draw() {
    if (!table) return [];
    return [
      h("h1", { "data-key": "title" }, table.name, " ", h("span", { class: "path" }, table.base_path)),
      ...incidents.draw(active.jobs, problems.items ?? [], changed),
      problems.draw(active.jobs, changed, { isQuiet: true }),
      ...(table.profile.warnings ?? []).map((text) => problem({ title: text }, "warn")),
      active.jobs.length > 0 && active.draw(null, changed),
      timeline.draw(changed),
      trend.draw(changed),
      layout.draw(),
      h(
        "div",
        { class: "columns", "data-key": "columns" },
        h("div", { class: "stack" }, state.draw(), may("operator") && form.draw(table), lock.draw(), options.draw(table)),
        h("div", { class: "stack" }, upkeep.draw(changed), facts(), may("admin") && declarations.draw(), columns(table.profile)),
      ),
      commits.draw(),
      recent.draw(null, changed),
    ];
  }

  function facts() {
    const { profile, index, lock, writers } = table;
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
        ["Lock", lock.provider],
        ["Writers", writers.stopped ? "stopped" : writers.hudi_version ? `Hudi ${writers.hudi_version}` : "not declared"],
        ["Readers", table.readers.hudi_version && `Hudi ${table.readers.hudi_version}`],
        ["Engines", listed(writers.engines) ?? "not declared"],
        ["Flink job", writers.flink && `${writers.flink.job} at ${writers.flink.rest_url}`],
        ["Detected", detected(writers.detected)],
        ["Last jobs", latest.draw(id)],
      ),
      h("p", { class: "quiet" }, `As of the registration or last change, ${moment(table.updated_at)}.`),
      may("operator") && h("div", { class: "actions" }, h("button", { type: "button", onclick: poll }, "Poll it now")),
    );
  }

  const poll = () => post(`${tablePath(id)}/poll`).then(() => changed(), changed);

  return { title: () => table?.name ?? "Table", load, draw, refresh: () => active.refresh(), isBusy: () => active.isMoving };
}

/** The latest evidence of each engine. */
function detected(sightings) {
  const every = Object.entries(sightings ?? {});
  if (!every.length) return null;
  const one = ([engine, { last_seen: at, instant, evidence }]) =>
    h("li", { "data-key": engine }, engine, ", last ", time(at), instant && [" at ", h("code", {}, instant)], `: ${evidence}`);
  return h("ul", { class: "plain" }, ...every.map(one));
}

function columns(profile) {
  if (!profile.columns?.length) return null;
  return h(
    "details",
    { class: "card", "data-key": "schema" },
    h("summary", {}, `Columns (${profile.columns.length})`),
    pairs(...profile.columns.map((column) => [column.name, h("code", {}, column.type)])),
  );
}
