// The workers, the demand of each worker group, the waiting jobs, and the pause of all automatic jobs.

import { get } from "./api.js";
import { h } from "./dom.js";
import { between, kindName, moment, number, seconds } from "./format.js";
import { card, grid, jobLink, link, pairs, prose, tableLink, time, webLink } from "./components.js";
import { Pause } from "./pause.js";

const WORKER_HEADINGS = ["Worker", "State", "Slots", "Jobs", "Seen", "Spark"];
const GROUP_HEADINGS = ["Group", "Queued", "Can start", "Oldest waits for", "Running", "Slots", "Wanted", "Workers", "Expected"];
const JOB_HEADINGS = ["Job", "Table", "Group", "Submitted", "Waits for"];
const MOST_JOBS = 10;
// A worker calls at least every 20 s.
const SILENT_SECONDS = 60;
const STATES = { ready: "ready", starting: "starts Spark", waits_for_executors: "waits for executors", failed: "did not start" };

export function workersPage(changed) {
  const pause = new Pause();
  let workers = null;
  let groups = {};
  let queued = [];
  let loadedAt = null;

  async function load() {
    const [listed, demand, jobs] = await Promise.all([get("v1/workers"), get("v1/workers/demand"), get("v1/jobs", { state: "queued", limit: MOST_JOBS }), pause.load()]);
    loadedAt = new Date().toISOString();
    workers = listed.items;
    groups = demand.groups;
    queued = jobs.items;
  }

  function draw() {
    if (!workers) return [];
    return [
      h("h1", { "data-key": "title" }, "Workers"),
      card("groups", "Worker groups", grid("Worker groups", GROUP_HEADINGS, Object.entries(groups).map(group))),
      card(
        "workers",
        `Workers (${workers.length})`,
        grid("Workers", WORKER_HEADINGS, workers.map((each) => ({ key: each.id, cells: cells(each, loadedAt) })), "No worker has called the service within the last day. ", h("code", {}, "groundskeeper worker --service URL"), " starts a worker."),
      ),
      card(
        "queued",
        "Jobs that wait",
        grid("Jobs that wait", JOB_HEADINGS, queued.map(job), "No job is queued."),
        queued.length === MOST_JOBS && h("p", {}, link("#/jobs", "All jobs that wait")),
      ),
      pause.draw(changed),
    ];
  }

  function job(each) {
    return {
      key: each.id,
      cells: [
        [jobLink(each, kindName(each.kind)), each.dry_run && " (dry run)"],
        tableLink(each.table_id, each.table_name),
        each.worker_group,
        time(each.created_at),
        prose(each.waits_for ?? "–"),
      ],
    };
  }

  // The page is polled, because no events report the calls of workers.
  return { title: () => "Workers", load, draw, isBusy: () => Boolean(workers?.length || queued.length) };
}

function group([name, each]) {
  const isShort = each.startable > 0 && !each.workers;
  return {
    key: name,
    cells: [
      [name, isShort && [" ", h("span", { class: "tag bad" }, "no worker is ready")]],
      number(each.queued),
      number(each.startable),
      each.startable ? seconds(each.oldest_seconds) : "–",
      number(each.running),
      number(each.slots),
      number(each.wanted_slots),
      [number(each.workers), each.waiting_workers > 0 && `, and ${number(each.waiting_workers)} that are not ready`],
      each.forecast,
    ],
  };
}

const refused = ({ title, detail, hint }) => h("details", {}, h("summary", {}, h("span", { class: "badge failed" }, STATES.failed), ` ${title}`), h("p", {}, detail), h("p", {}, hint));

function cells(worker, now) {
  const isSilent = between(worker.last_seen, now) > SILENT_SECONDS;
  const conf = Object.entries(worker.spark_conf).map(([name, value]) => [name, h("code", {}, value)]);
  return [
    [h("code", {}, worker.id), h("div", { class: "quiet" }, `group ${worker.group}`)],
    worker.error ? refused(worker.error) : isSilent ? h("span", { class: "badge lost" }, "silent") : h("span", { class: `badge ${worker.state === "ready" ? "succeeded" : "running"}` }, STATES[worker.state] ?? worker.state ?? "seen"),
    worker.slots == null ? "–" : `${number(worker.job_ids.length)} of ${number(worker.slots)} in use`,
    worker.job_ids.length ? h("ul", { class: "plain" }, ...worker.job_ids.map((id) => h("li", { "data-key": id }, jobLink({ id }, h("code", {}, id))))) : "none",
    [time(worker.last_seen), h("div", { class: "quiet" }, `since ${moment(worker.first_seen)}`)],
    h(
      "details",
      {},
      h("summary", {}, worker.master ?? "unknown"),
      pairs(
        ["Version", worker.version],
        ["Application", worker.application_id && h("code", {}, worker.application_id)],
        ["Spark UI", webLink(worker.ui_url)],
        ["Driver memory", worker.driver_memory],
        ["Executors", worker.executors != null && number(worker.executors)],
        ...conf,
      ),
    ),
  ];
}
