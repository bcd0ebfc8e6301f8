// The queued and running jobs, with their progress and a button to cancel them.

import { all, get, jobPath, orNull, post } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { between, bytes, isActive, kindName, moment, number, seconds } from "./format.js";
import { badge, card, jobTitle, link, prose, tableLink } from "./components.js";
import { may } from "./role.js";

const STATES = ["running", "leased", "queued"];
const MOST_REFRESHED = 100;

export class Active {
  /** `query` selects jobs, for example of one table. */
  constructor(query = {}) {
    this.query = query;
    this.jobs = [];
    this.forecast = {};
  }

  /** Returns the active jobs, and those that have ended since the last call. */
  async load() {
    const jobs = (await all("v1/jobs", { ...this.query, state: STATES })).sort(byTurn);
    const ids = new Set(jobs.map((job) => job.id));
    const gone = this.jobs.filter((job) => !ids.has(job.id));
    // A job is deleted with its table.
    const again = (await Promise.all(gone.map((job) => orNull(get(jobPath(job.id)))))).filter(Boolean);
    this.jobs = [...jobs, ...again.filter(isActive)];
    return [...jobs, ...again];
  }

  /** Takes the active jobs and the forecast of each worker group's queue from the answer of another call. */
  take(jobs, forecast) {
    this.jobs = jobs;
    this.forecast = forecast;
  }

  /** Loads the forecast, for a page of all jobs. */
  async loadForecast() {
    const { groups } = await get("v1/workers/demand");
    const busy = Object.entries(groups).filter(([, group]) => group.queued);
    this.forecast = Object.fromEntries(busy.map(([name, group]) => [name, group.forecast]));
  }

  /** Returns whether the progress of a job may change without an event. The start of a queued job is an event. */
  get isMoving() {
    return this.jobs.some((job) => job.state !== "queued");
  }

  /** Loads only the progress of the known jobs, because an event reports each beginning and end of a job. */
  async refresh() {
    const { items } = await get("v1/jobs", { ...this.query, state: "running", limit: MOST_REFRESHED });
    const found = new Map(items.map((job) => [job.id, job]));
    this.jobs = this.jobs.map((job) => ({ ...job, ...found.get(job.id) }));
  }

  /** Draws a line for each job, or for the first `most` ones. If `isOfMany`, the lines name the tables. */
  draw(isOfMany, changed, { total = this.jobs.length, most } = {}) {
    const forecasts = Object.entries(this.forecast).map(([group, text]) => (group === "default" ? text : `${group}: ${text}`));
    return card(
      "active",
      "Active jobs",
      forecasts.length > 0 && h("p", { class: "quiet", "data-key": "forecast" }, forecasts.join("; ")),
      this.jobs.length
        ? h("ul", { class: "active", tabindex: "0", "aria-label": "Active jobs, one a line" }, ...this.jobs.slice(0, most).map((job) => item(job, isOfMany, changed)))
        : h("p", { class: "quiet" }, "No job is queued or running."),
      total > this.jobs.length && h("p", {}, link("#/jobs", `All ${number(total)} active jobs`)),
    );
  }
}

/** Puts running jobs first, and sorts the others by age. */
const byTurn = (one, other) => STATES.indexOf(one.state) - STATES.indexOf(other.state) || one.created_at.localeCompare(other.created_at);

function item(job, isOfMany, changed) {
  return h(
    "li",
    { "data-key": job.id },
    h("span", { class: "what" }, ...jobTitle(job), isOfMany && [" on ", tableLink(job.table_id, job.table_name)]),
    badge(job),
    bar(job) ?? h("span", {}),
    h("span", { class: "how" }, stepAndDuration(job)),
    cancelButton(job, isOfMany && job.table_name, changed),
  );
}

const isHeld = (job) => job.state === "running" || job.state === "leased";

/** Returns the progress bar; null for a job that waits. */
function bar(job) {
  if (!isHeld(job)) return null;
  const { tasks_done = 0, tasks_total = 0, bytes_done = 0, bytes_total = 0 } = job.progress ?? {};
  const part = tasks_total ? tasks_done / tasks_total : bytes_total ? bytes_done / bytes_total : null;
  return h("progress", { "aria-label": `Progress of ${kindName(job.kind)}`, max: 1, value: part && Math.min(1, part) });
}

/** Says the step of the job and its duration. */
function stepAndDuration(job) {
  const { step, tasks_done = 0, tasks_total = 0, bytes_done = 0, bytes_total = 0 } = job.progress ?? {};
  const since = (isHeld(job) && (job.started_at ?? job.leased_at)) || job.created_at;
  const words = [
    isHeld(job) ? (step ?? "taken by a worker") : waiting(job),
    tasks_total > 0 && `${number(tasks_done)} of ${number(tasks_total)} tasks`,
    (bytes_total > 0 || bytes_done > 0) && `${bytes(bytes_done)}${bytes_total ? ` of ${bytes(bytes_total)}` : ""}`,
    job.forecast?.text,
    job.attempt > 0 && `attempt ${job.attempt} of ${job.max_attempts}`,
  ].filter(Boolean);
  return [...prose(`${words.join(" · ")} · `), h("time", { datetime: since, title: `since ${moment(since)}` }, `for ${seconds(between(since))}`)];
}

/** The bar, the step and the duration, for the page of one job. */
export const progress = (job) => h("div", { class: "progress" }, bar(job), h("p", {}, stepAndDuration(job)));

/** Says what the job waits for. The service words the reason. */
const waiting = ({ waits_for: waitsFor }) => (waitsFor ? `waits for ${waitsFor}` : "waits");

/** Returns the button; null for callers who may not cancel the job. */
export function cancelButton(job, tableName, changed) {
  if (!may("operator")) return null;
  const name = kindName(job.kind).toLowerCase();
  const label = tableName ? `Cancel the ${name} of ${tableName}` : `Cancel the ${name}`;
  return h(
    "button",
    {
      type: "button",
      class: "small danger",
      "aria-label": label,
      disabled: job.cancel_requested,
      onclick: () => cancel(job, label, changed),
    },
    job.cancel_requested ? "Cancelling …" : "Cancel",
  );
}

async function cancel(job, label, changed) {
  const text = "A queued job ends at once. A running job ends when its worker has cleaned up; the worker learns of the cancellation within seconds.";
  if (!(await confirmed(`${label}?`, text, "Cancel the job"))) return;
  await post(`${jobPath(job.id)}/cancel`).then(() => changed(), changed);
}
