// One table: its problems, the running and the next job, and tabs with everything else.

import { get, post, tablePath } from "./api.js";
import { Active } from "./active.js";
import { Advice } from "./advice.js";
import { card, problem } from "./components.js";
import { Commits } from "./commits.js";
import { Consumers } from "./consumers.js";
import { Declarations } from "./declarations.js";
import { h } from "./dom.js";
import { Incidents } from "./incidents.js";
import { jobForm } from "./job_form.js";
import { Latest } from "./last_jobs.js";
import { Layout } from "./layout.js";
import { Lock } from "./lock.js";
import { Outcome } from "./outcome.js";
import { Problems } from "./problems.js";
import { Recent } from "./recent.js";
import { may } from "./role.js";
import { columns, shapeFacts, writerFacts } from "./table_facts.js";
import { TableState } from "./table_state.js";
import { tabs } from "./tabs.js";
import { TimelineChart } from "./timeline_chart.js";
import { Trend } from "./trend.js";
import { Upkeep } from "./upkeep.js";
import { WriterOptions } from "./writer_options.js";

const TABS = [
  ["health", "Health"],
  ["jobs", "Jobs"],
  ["policy", "Policy"],
  ["writers", "Writers"],
  ["timeline", "Timeline"],
  ["files", "Files"],
];

export function tablePage(id, changed, query = {}) {
  const active = new Active({ table_id: id });
  const recent = new Recent({ table_id: id });
  const latest = new Latest();
  const incidents = new Incidents(id);
  const outcome = new Outcome(id);
  const problems = new Problems(id);
  const commits = new Commits(id);
  const state = new TableState(id);
  const timeline = new TimelineChart(id);
  const trend = new Trend(id);
  const layout = new Layout(id);
  const lock = new Lock(id, changed);
  const upkeep = new Upkeep(id);
  const advice = new Advice(id, changed);
  const form = jobForm(changed);
  const options = new WriterOptions(id, changed);
  const declarations = new Declarations(id, changed);
  const consumers = new Consumers(id, changed);
  let table = null;
  let activeJobs = [];
  let tab = tabOf(query);

  /** Each tab loads these data, in addition to the data of the head of the page. */
  const loads = {
    health: () => [Promise.all([trend.load(state.snapshot), outcome.load()]), lock.load()],
    jobs: () => [recent.load(), latest.fill([table])],
    policy: () => [advice.load()],
    writers: () => [consumers.load()],
    timeline: () => [timeline.load(state.snapshot), commits.load()],
    files: () => [layout.load(state.snapshot)],
  };

  async function load() {
    const asked = tab;
    [table, activeJobs] = await Promise.all([get(tablePath(id)), active.load(), state.load(), upkeep.load(), incidents.load(), problems.load()]);
    // The page does not wait for the lock, because the service reads the lock from the storage, which may take long.
    const [first, ...others] = loads[asked]();
    await (asked === "health" ? first : Promise.all([first, ...others]));
    recent.learn(activeJobs);
    latest.learn([...recent.seen.values(), ...activeJobs]);
  }

  const panels = {
    health: () => [h("div", { class: "columns", "data-key": "columns" }, h("div", { class: "stack" }, state.draw()), h("div", { class: "stack" }, lock.draw(), outcome.draw())), trend.draw(changed)],
    jobs: () => [
      h(
        "div",
        { class: "columns", "data-key": "columns" },
        h("div", { class: "stack" }, may("operator") && form.draw(table)),
        h("div", { class: "stack" }, card("latest", "The last job of each kind", latest.draw(id))),
      ),
      recent.draw(false, changed),
    ],
    policy: () => (advice.isOpen ? [advice.draw(), upkeep.draw(changed)] : [upkeep.draw(changed), advice.draw()]),
    writers: () => [writerFacts(table), options.draw(table), consumers.draw(), may("admin") && declarations.draw()],
    timeline: () => [timeline.draw(changed), commits.draw()],
    files: () => [layout.draw(), shapeFacts(table, may("operator") && h("div", { class: "actions" }, h("button", { type: "button", onclick: poll }, "Poll it now"))), columns(table)],
  };

  function draw() {
    if (!table) return [];
    const work = upkeep.decisions.drawNext();
    return [
      h("h1", { "data-key": "title" }, table.name, " ", h("span", { class: "path" }, table.base_path)),
      ...incidents.draw(active.jobs, problems.items ?? [], changed),
      problems.draw(active.jobs, changed, { isBelowIncidents: incidents.every.length > 0 }),
      ...(table.profile.warnings ?? []).map((text) => problem({ title: text }, "warn")),
      active.jobs.length > 0 && active.draw(false, changed),
      work.length > 0 && h("section", { class: "card next", "data-key": "next", "aria-label": "What comes next" }, ...work),
      ...tabs(`Parts of ${table.name}`, TABS, tab, show, panels[tab]()),
    ];
  }

  const show = (wanted) => changed.go(wanted === TABS[0][0] ? {} : { tab: wanted });

  const poll = () => post(`${tablePath(id)}/poll`).then(() => changed(), changed);

  return {
    title: () => table?.name ?? "Table",
    load,
    draw,
    /** Opens another tab. */
    choose(wanted) {
      tab = tabOf(wanted);
      changed.redraw();
    },
    refresh: () => active.refresh(),
    isBusy: () => active.isMoving,
  };
}

const tabOf = ({ tab }) => (TABS.some(([key]) => key === tab) ? tab : TABS[0][0]);
