// One job: its progress, its result, and its error.

import { attempt, get, jobPath, post, problemOf, tablePath } from "./api.js";
import { cancelButton, progress } from "./active.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { JobLog } from "./job_log.js";
import { between, isActive, kindName, moment, seconds, sentence } from "./format.js";
import { badge, card, dryRun, grid, jobLink, pairs, problem, tableLink, time, webLink } from "./components.js";
import { result, values } from "./result.js";
import { may } from "./role.js";

const BASIS = { size: "tables of this size", kind: "other tables", default: "no earlier job" };
const RETRIABLE = ["failed", "cancelled"];

export function jobPage(id, changed) {
  let job = null;
  let table = null;
  let failure = null;
  let handOverFailure = null;
  const log = new JobLog(id);

  async function load() {
    job = await get(jobPath(id));
    await Promise.all([log.load(job), (async () => (table ??= await get(tablePath(job.table_id))))()]);
  }

  function draw() {
    if (!job) return [];
    return [
      h("h1", { "data-key": "title" }, kindName(job.kind), " of ", tableLink(table.id, table.name), " ", badge(job), " ", dryRun(job)),
      job.hand_over && handOver(),
      isActive(job) && card("progress", "Progress", progress(job), may("operator") && h("div", { class: "actions" }, cancelButton(job, table.name, changed))),
      job.error && job.state !== "succeeded" && !isRefused() && problem(job.error, job.state === "failed" ? "bad" : "warn"),
      job.result && card("result", job.dry_run ? "Plan" : "Result", ...result(job), job.dry_run && go()),
      again(),
      h("div", { class: "columns", "data-key": "columns" }, order(), timings()),
      job.attempts.length > 0 && card("attempts", "Attempts", attempts(job)),
      log.draw(changed),
      h("details", { class: "card", "data-key": "json" }, h("summary", {}, "As JSON"), h("pre", {}, JSON.stringify(job, null, 2))),
    ];
  }

  /** Returns whether the job was refused. The result of a refused job has all reasons; its error is the first of
   * them. */
  function isRefused() {
    return Boolean(job.result?.refusals?.some((each) => each.title === job.error.title && each.detail === job.error.detail));
  }

  /** Returns a button that submits the job again if it has failed or was cancelled. */
  function again() {
    if (!RETRIABLE.includes(job.state) || !may("operator")) return null;
    const retry = () => start(() => post(`${jobPath(id)}/retry`));
    return h(
      "div",
      { "data-key": "again" },
      failure && problem(failure),
      h("div", { class: "actions again" }, h("button", { type: "button", onclick: retry }, "Submit it again")),
    );
  }

  /** Returns a button that runs the job after a dry run whose verdict is `ready`. */
  function go() {
    if (!may("operator") || job.verdict !== "ready") return null;
    return [
      failure && problem(failure),
      h("div", { class: "actions" }, h("button", { type: "button", class: "primary", onclick: run }, "Run it now")),
    ];
  }

  const run = () => start(() => post(`${tablePath(table.id)}/jobs`, { kind: job.kind, params: job.params, dry_run: false }));

  async function start(submit) {
    try {
      const started = await submit();
      location.hash = `#/jobs/${encodeURIComponent(started.id)}`;
    } catch (error) {
      failure = problemOf(error);
      changed.redraw();
    }
  }

  /** Shows the state of the hand-over, and a button to confirm that the writers were stopped. */
  function handOver() {
    const { state, since, deadline, by, savepoint, detail, restart } = job.hand_over;
    const isOpen = job.state === "queued" && ["draining", "stopping"].includes(state);
    return card(
      "hand-over",
      "Hand-over by the writers",
      pairs(
        ["State", state],
        ["Since", h("time", { datetime: since }, moment(since))],
        ["Deadline", isOpen && h("time", { datetime: deadline }, moment(deadline))],
        ["Stopped by", by],
        ["Savepoint", savepoint && h("code", {}, savepoint)],
        ["Start Flink again", restart.replace("-", " ")],
      ),
      detail && h("p", {}, detail),
      isOpen && may("operator") && h("div", { class: "actions" }, h("button", { type: "button", onclick: confirmStopped }, "The writers were stopped")),
      handOverFailure && problem(handOverFailure),
    );
  }

  async function confirmStopped() {
    const { restart } = job.hand_over;
    const then = restart === "without-state" ? " Afterwards Flink must be started without its state, so not from a savepoint." : "";
    const text = `Confirm only when every Flink job that writes this table has ended. The job goes on at once.${then}`;
    if (!(await confirmed("The writers were stopped?", text, "They were stopped"))) return;
    await attempt(() => post(`${jobPath(id)}/writers-stopped`, { restart }), changed, (found) => (handOverFailure = found));
  }

  function order() {
    return card(
      "order",
      "Request",
      pairs(
        ["Job", h("code", {}, job.id)],
        ["Submitted by", job.requested_by],
        ["Reason", job.reason && `${sentence(job.reason)}.`],
        ["Repeats", job.retry_of && jobLink({ id: job.retry_of }, h("code", {}, job.retry_of))],
        ["Priority", job.priority !== 0 && String(job.priority)],
        ["Time limit of an attempt", job.timeout_seconds != null && seconds(job.timeout_seconds)],
        ["Worker group", job.worker_group !== "default" && job.worker_group],
        ["Dry run", job.dry_run ? "yes" : "no"],
        ["Attempts", `${job.attempt} of at most ${job.max_attempts}`],
        ["Worker", job.worker_id && h("code", {}, job.worker_id)],
        ["Instants", job.instants.length > 0 && h("ul", { class: "plain" }, ...job.instants.map(instant))],
      ),
      Object.keys(job.params).length > 0 && h("h3", {}, "Parameters"),
      values(job.params),
    );
  }

  function timings() {
    const at = (text) => text && h("time", { datetime: text }, moment(text));
    const isLater = Date.parse(job.not_before) > Date.parse(job.created_at);
    return card(
      "timings",
      "Timings",
      pairs(
        ["Submitted", at(job.created_at)],
        ["Not before", isLater && at(job.not_before)],
        ["Taken by a worker", at(job.leased_at)],
        ["Expected start", at(job.forecast?.starts_at)],
        ["Started", at(job.started_at)],
        ["Expected end", at(job.forecast?.ends_at)],
        ["Ended", at(job.finished_at)],
        ["Expected to take", job.forecast && `${seconds(job.forecast.seconds)}${job.forecast.is_guess ? ` (a guess, from ${BASIS[job.forecast.learned_from]})` : ""}`],
        ["Waited", seconds(job.spent.waited_seconds)],
        ["Worked", seconds(job.spent.worked_seconds)],
        [isActive(job) ? "Total until now" : "Total", seconds(job.spent.took_seconds)],
      ),
    );
  }

  return { title: () => (job ? `${kindName(job.kind)} of ${table.name}` : "Job"), load, draw, isBusy: () => Boolean(job && (isActive(job) || job.state === "unknown")) };
}

const instant = (text) => h("li", {}, h("code", {}, text));

function attempts(job) {
  const rows = job.attempts.map((each) => ({
    key: String(each.attempt),
    cells: [
      String(each.attempt),
      each.outcome === "succeeded" ? badge(job) : h("span", { class: `badge ${each.outcome ?? "running"}` }, each.outcome ?? "running"),
      time(each.started_at),
      seconds(between(each.started_at, each.ended_at)),
      [h("code", {}, each.worker_id), each.spark_url && [" ", webLink(each.spark_url, "Spark UI")]],
      each.error ? problem(each.error, "quietly") : "–",
    ],
  }));
  return grid("Attempts", ["Attempt", "Outcome", "Started", "Took", "Worker", "Error"], rows);
}
