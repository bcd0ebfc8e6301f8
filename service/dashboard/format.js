// Readable numbers, times and names.

import { KINDS } from "./kinds.js";

export const DAY_MS = 86_400_000;

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
// A browser needs tens of milliseconds to make the formatters. They are made at the first use, because a page should
// request its data first.
let numbers = null;
let moments = null;

export const STATES = ["queued", "leased", "running", "succeeded", "failed", "cancelled", "unknown"];

const TYPES = { MERGE_ON_READ: "MOR", COPY_ON_WRITE: "COW" };

export const kindName = (kind) => KINDS[kind] ?? sentence(kind);
export const tableType = (profile) => TYPES[profile.table_type] ?? profile.table_type ?? "unknown";

export const isActive = (job) => ["queued", "leased", "running"].includes(job.state);

export function number(value) {
  numbers ??= new Intl.NumberFormat("en");
  return numbers.format(value);
}

export const plural = (value, noun, many = `${noun}s`) => (value === 1 ? noun : many);

export const count = (value, noun, many) => `${number(value)} ${plural(value, noun, many)}`;

/** Returns the names separated by commas; null without names. */
export const listed = (names) => (names?.length ? names.join(", ") : null);

export function bytes(value) {
  const power = value < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${power && scaled < 100 ? scaled.toFixed(1) : Math.round(scaled)} ${UNITS[power]}`;
}

/** Returns the description in a schema of the API without the backticks around names. Forms show `none` for null. */
export const described = ({ description }) => plain(description)?.replace(/\bnull\b/g, "none");
export const plain = (text) => text?.replaceAll("`", "");

export function seconds(value) {
  if (value < 1) return `${Math.round(Math.max(0, value) * 1000)} ms`;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  if (value < 3600) return both(Math.floor(value / 60), "min", Math.floor(value % 60), "s");
  if (value < 172_800) return both(Math.floor(value / 3600), "h", Math.floor((value % 3600) / 60), "min");
  return `${Math.floor(value / 86_400)} days`;
}

const both = (large, its, small, unit) => (small ? `${large} ${its} ${small} ${unit}` : `${large} ${its}`);

/** Returns the seconds between two moments; without the second one, the seconds until now. */
export const between = (from, to) => Math.max(0, ((to ? Date.parse(to) : Date.now()) - Date.parse(from)) / 1000);

export function ago(moment) {
  const passed = between(moment);
  if (passed < 5) return "just now";
  if (passed < 60) return `${Math.floor(passed)} s ago`;
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86_400) return `${Math.floor(passed / 3600)} h ago`;
  return count(Math.floor(passed / 86_400), "day") + " ago";
}

export function moment(text) {
  moments ??= new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  return moments.format(new Date(text));
}

/** Formats a moment for an axis of `length` milliseconds, as short as possible. */
export function brief(at, length) {
  const parts = length > 2 * DAY_MS ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat("en-GB", parts).format(at);
}

/** Returns the browser's time zone, in which all moments are shown. */
export function zone() {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const offset = new Intl.DateTimeFormat("en", { timeZoneName: "longOffset" }).formatToParts().find((part) => part.type === "timeZoneName").value;
  return offset === "GMT" ? timeZone : `${timeZone} (${offset})`;
}

/** `bytes_written` becomes `Bytes written`. */
export function sentence(name) {
  const words = String(name).replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
