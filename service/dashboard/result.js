// The result or plan of a job, as names and values. A kind of job may have values that this page does not know.

import { h } from "./dom.js";
import { bytes, count, number, seconds, sentence } from "./format.js";
import { KINDS } from "./kinds.js";
import { pairs, problem } from "./components.js";
import { split } from "./bucket_diagram.js";

const LONG = 6;
const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isFinite);
const isPlain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isProblem = (value) => isPlain(value) && "title" in value && "type" in value;

/** Shows the measured values of a job or the plan of a dry run, with the refusals first. */
export function result(job) {
  const { refusals, findings, healthy, notes, nothing_to_do: _shown, ...rest } = job.result;
  return [
    findings && (findings.length > 0 || !("clean" in rest)) && diagnosed(findings, healthy),
    refusals && (job.dry_run || refusals.length > 0) && verdict(refusals, job),
    job.verdict === "nothing_to_do" && h("p", { class: "problem note" }, h("strong", {}, job.dry_run ? "There is nothing to do." : "There was nothing to do.")),
    job.cost && h("p", { class: "problem note" }, h("strong", {}, "The job would take "), `${job.cost.text}${job.cost.is_guess ? ", which is a guess" : ""}.`),
    ...(notes ?? []).map((text) => problem({ title: text }, "warn")),
    "clean" in rest && audited(rest.clean),
    isPair(rest.buckets) && rest.buckets[1] !== rest.buckets[0] && split(...rest.buckets),
    values(rest),
  ];
}

/** Shows names and values, with units. */
export const values = (object) => pairs(...Object.entries(object).map(([name, value]) => [label(name), shown(name, value)]));

/** Returns the label of a value, without the unit, because the value shows its unit. */
const label = (name) => (name === "seconds" ? "Run time" : sentence(name.replace(/_(seconds|ms|milliseconds)$/, "")));

function verdict(refusals, { dry_run: isDryRun, verdict: said }) {
  if (said === "nothing_to_do") return null;
  if (!refusals.length) return h("p", { class: "problem good" }, h("strong", {}, "The service would not refuse the job."));
  const words = `${isDryRun ? "The job would be refused" : "The job was refused"}, for ${count(refusals.length, "reason")}:`;
  return [h("p", {}, words), refusals.map((each) => problem(each, "bad"))];
}

function audited(isClean) {
  return isClean
    ? h("p", { class: "problem good" }, h("strong", {}, "The table is clean."))
    : h("p", { class: "problem bad" }, h("strong", {}, "The audit found errors, or could not do all checks. The findings are below."));
}

/** Shows the findings of a diagnosis. The check of a metadata table has no verdict on the table. */
function diagnosed(findings, isHealthy) {
  if (!findings.length) {
    const words = isHealthy === false ? "No damage was found, but not all checks could be done." : "Nothing is damaged.";
    return h("p", { class: `problem ${isHealthy === false ? "warn" : "good"}` }, h("strong", {}, words));
  }
  // The type is left out, because no page explains a type of damage.
  return findings.map((each) => problem({ ...each, type: null, hint: [each.effect, each.hint, cure(each)].filter(Boolean).join(" ") }, "bad"));
}

function cure({ cure: job }) {
  if (!job) return null;
  const params = Object.keys(job.params).length ? ` with ${JSON.stringify(job.params)}` : "";
  return `Cured by: ${KINDS[job.kind] ?? job.kind}${params}.`;
}

function shown(name, value) {
  if (value === null || value === undefined) return null;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return measured(name, value);
  if (name === "buckets" && isPair(value)) return `${number(value[0])} → ${number(value[1])}`;
  if (isProblem(value)) return problem(value);
  if (Array.isArray(value)) return list(name, value);
  if (isPlain(value)) return "before" in value && "after" in value ? change(name, value) : values(value);
  return String(value);
}

function measured(name, value) {
  if (/(^|_)bytes(_|$)/.test(name)) return h("span", { title: `${number(value)} bytes` }, bytes(value));
  if (/(^|_)seconds$/.test(name)) return seconds(value);
  if (/(^|_)(ms|milliseconds)$/.test(name)) return seconds(value / 1000);
  return number(value);
}

const change = (name, { before, after }) => [shown(name, before) ?? "?", " → ", shown(name, after) ?? "not known yet"];

function list(name, values) {
  if (!values.length) return "none";
  const items = h("ul", { class: "plain" }, ...values.map((each) => h("li", {}, shown(name, each))));
  return values.length <= LONG ? items : h("details", {}, h("summary", {}, `${number(values.length)} entries`), items);
}

/** Returns a short summary for a line of a list. */
export function summary(job) {
  if (job.error && job.state !== "succeeded") return job.error.title;
  const { refusals, buckets, clean, findings, healthy, ...rest } = job.result ?? {};
  if (refusals?.length) return `${job.dry_run ? "would be" : "was"} refused: ${refusals[0].title}`;
  if (job.verdict === "nothing_to_do") return "nothing to do";
  if (findings?.length) return `${count(findings.length, "finding")}: ${findings[0].title}`;
  if (findings && clean === undefined) return healthy === false ? "no damage found, some checks not done" : "nothing is damaged";
  if (clean !== undefined) return clean ? `clean${rest.rows == null ? "" : `, ${count(rest.rows, "row")}`}` : "found errors";
  if (isPair(buckets)) return `${number(buckets[0])} → ${number(buckets[1])} buckets`;
  if ("metastore" in rest) return rest.changed === false ? "nothing differed" : count(rest.tables.length, "table");
  if ("files_deleted" in rest) return `${count(rest.files_deleted, "file")} deleted`;
  if ("files" in rest) return `${count(rest.files, "file")}${rest.bytes ? `, ${bytes(rest.bytes)}` : ""}`;
  if ("bytes_written" in rest) return `${bytes(rest.bytes_written)} written`;
  return "";
}
