// The last lines of a job's log.

import { get, jobPath, pathOf, Refused } from "./api.js";
import { h } from "./dom.js";
import { count, isActive, moment } from "./format.js";
import { card, field, select } from "./components.js";

const PAGE = 500;
// The service keeps about this many pages of a job's log.
const MOST_PAGES = 40;
const SHOWN = 300;
const LEVELS = [
  ["DEBUG", "all lines"],
  ["INFO", "information and above"],
  ["WARNING", "warnings and errors"],
  ["ERROR", "errors"],
];
// The log is loaded for this time after the end of the job. The worker's last lines come with the result, and its clock
// may differ from that of the service.
const SETTLES_MS = 30_000;

export class JobLog {
  constructor(id) {
    this.path = `${jobPath(id)}/log`;
    this.level = "INFO";
    this.lines = [];
    this.position = null;
    this.isUnknown = false;
    this.isRead = false;
  }

  /** Reads the lines since the last call. Some time after the end of the job, reads nothing any more. */
  async load(job) {
    const isSettled = !isActive(job) && Date.now() - Date.parse(job.finished_at ?? job.created_at) > SETTLES_MS;
    if (this.isUnknown || (this.isRead && isSettled)) return;
    const { level } = this;
    let cursor = this.position;
    try {
      for (let pages = 0; pages < MOST_PAGES; pages += 1) {
        const page = await get(this.path, { level, limit: PAGE, cursor });
        if (level !== this.level) return;
        this.lines = [...this.lines, ...page.items].slice(-SHOWN);
        this.position = cursor = page.position ?? page.next_cursor ?? cursor;
        if (!page.next_cursor) break;
      }
      this.isRead = true;
    } catch (error) {
      // An earlier version of the service keeps no logs.
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      this.isUnknown = true;
    }
  }

  draw(changed) {
    if (this.isUnknown || !this.isRead) return null;
    const choose = (event) => {
      this.level = event.target.value;
      this.lines = [];
      this.position = null;
      this.isRead = false;
      changed();
    };
    const attempts = new Set(this.lines.map((each) => each.attempt));
    return card(
      "log",
      "Log",
      h(
        "div",
        { class: "filters" },
        field("Lines", select({ onchange: choose }, LEVELS, this.level)),
        h("a", { href: pathOf(`${this.path}.txt`).href, download: "" }, "Download the log"),
      ),
      this.lines.length
        ? h("ol", { class: "log", tabindex: 0, "aria-label": "Log", "data-key": "lines" }, ...this.lines.map((line) => item(line, attempts.size > 1)))
        : h("p", { class: "quiet" }, "The log has no such lines."),
      this.lines.length === SHOWN && h("p", { class: "quiet" }, `The last ${count(SHOWN, "line")}; the file has all of them.`),
    );
  }
}

function item({ at, level, logger, message, attempt }, hasAttempts) {
  const origin = hasAttempts && attempt != null ? `attempt ${attempt}, ` : "";
  return h(
    "li",
    { class: level },
    h("time", { datetime: at }, moment(at)),
    ` ${level} ${origin}${logger}: ${message}`,
  );
}
