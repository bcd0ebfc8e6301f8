// Components that all views share.

import { pathOf } from "./api.js";
import { h } from "./dom.js";
import { ago, kindName, moment, sentence } from "./format.js";

// Matches the types of the service's problems. In the refusals of a result, the type is a name without an address. A
// proxy's answer may have another type, which does not match.
const OF_SERVICE = /^(?:\/problems\/)?([a-z0-9-]+)$/;

export const link = (href, ...children) => h("a", { href }, ...children);
export const jobLink = (job, ...children) => link(`#/jobs/${encodeURIComponent(job.id)}`, ...children);
export const tableLink = (id, ...children) => link(`#/tables/${encodeURIComponent(id)}`, ...children);

/** Returns a link to another site, which opens in a new tab. A text that is no web address stays text. */
export const webLink = (url, words = url) => url && (/^https?:/.test(url) ? h("a", { href: url, target: "_blank", rel: "noreferrer" }, words) : url);

export const card = (key, title, ...children) => h("section", { class: "card", "data-key": key, "aria-label": title }, h("h2", {}, title), ...children);

export const time = (text) => h("time", { datetime: text, title: moment(text) }, ago(text));

/** Returns the words for a job's state. A succeeded job may have the verdict that it would be refused or has nothing to
 * do: then the words are the verdict. */
export const outcome = ({ state, verdict }) => (state === "succeeded" && ["refused", "nothing_to_do"].includes(verdict) ? verdict.replaceAll("_", " ") : state);

/** Returns the CSS class that gives an outcome its colour. */
export const lookOf = (words) => words.replaceAll(" ", "-");

/** Returns the outcome as text, with a colour that means the same. */
export function badge(job) {
  const isCancelling = job.cancel_requested && ["queued", "leased", "running"].includes(job.state);
  const words = isCancelling ? "cancelling" : outcome(job);
  return h("span", { class: `badge ${lookOf(words)}` }, words);
}

export const dryRun = (job) => job.dry_run && h("span", { class: "tag" }, "dry run");

export const jobTitle = (job) => [jobLink(job, kindName(job.kind)), job.dry_run && " ", dryRun(job)];

/** Returns the number of buckets in the writers' options. If a hashing config overrides that number, returns the number
 * that the files show. */
export function bucketNumber({ index, profile }) {
  const { hashing_config: config, highest_bucket: highest } = profile.bucket_layout ?? {};
  return index && (config && highest != null ? Math.max(index.num_buckets, highest + 1) : index.num_buckets);
}

/** Shows a problem: what happened, why, and what to do. */
export function problem(document, kind = "bad") {
  return h(
    "div",
    { class: `problem ${kind}` },
    h("strong", {}, document.title),
    document.detail && document.detail !== document.title && !document.errors && h("p", {}, document.detail),
    document.errors && h("ul", {}, ...document.errors.map((each) => h("li", {}, `${sentence(each.field)}: ${each.message}`))),
    document.hint && h("p", { class: "hint" }, ...prose(document.hint)),
    document.retriable && h("p", { class: "hint" }, "The job may succeed later."),
    OF_SERVICE.test(document.type ?? "") && h("p", { class: "hint" }, explanation(document.type)),
  );
}

/** Shows a text of the service, in which backticks enclose code. */
export const prose = (text) => text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));

/** Returns a link to the service's page about a type of problem. */
function explanation(type) {
  const [, name] = OF_SERVICE.exec(type);
  return h("a", { href: pathOf(`problems/${name}`).href, target: "_blank", rel: "noreferrer" }, "More about this problem");
}

/** Returns a table that becomes a list of cards on a narrow screen, where `headings` label the cells. Without rows, the
 * sentence `empty` stands in its place. */
export function grid(label, headings, rows, ...empty) {
  if (!rows.length && empty.length) return h("p", { class: "quiet" }, ...empty);
  return h(
    "table",
    { "aria-label": label },
    h("thead", {}, h("tr", {}, ...headings.map((heading) => h("th", { scope: "col" }, heading)))),
    h(
      "tbody",
      {},
      ...rows.map(({ key, cells }) =>
        h("tr", { "data-key": key }, ...cells.map((cell, index) => h("td", { "data-label": headings[index] }, h("div", {}, cell)))),
      ),
    ),
  );
}

/** Shows names and values. Pairs whose value is null, undefined or false are left out. */
export function pairs(...entries) {
  const known = entries.filter(([, value]) => value !== null && value !== undefined && value !== false);
  return h(
    "dl",
    {},
    ...known.map(([name, value]) => h("div", { "data-key": name }, h("dt", {}, name), h("dd", {}, value))),
  );
}

export const field = (label, control, hint) => h("label", { class: "field", "data-key": label }, h("span", {}, label), control, hint && h("small", {}, hint));

/** Returns a select. Each of the `choices` is a pair of a value and its words. */
export function select(properties, choices, chosen) {
  return h(
    "select",
    properties,
    ...choices.map(([value, words]) => h("option", { value, selected: value === chosen, "data-key": value }, words)),
  );
}
