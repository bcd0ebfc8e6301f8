// Values with units in a form for people: 3 GiB, 2 h, 22:00 to 04:30.

import { number, sentence } from "./format.js";

const SIZES = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];
const TIMES = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
const HOURS = [["d", 24], ["h", 1]];
const ENTERED = /^([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)$/i;
// A bound of at least this size is only the limit of numbers in JSON, so it is not shown.
const LARGEST = 2 ** 53;

/** Returns the units of the member with this name, the largest first; null for a plain number. */
export function unitsOf(name) {
  const member = name.split(".").at(-1);
  if (/(^|_)bytes$/.test(member)) return SIZES;
  if (/(^|_)seconds$/.test(member)) return TIMES;
  return /_hours$/.test(member) ? HOURS : null;
}

/** Returns the name of a member for people, without the unit, which the values show. */
export const labelOf = (name) => sentence(name.split(".").at(-1).replace(/_(seconds|hours)$/, ""));

/** Returns the value in the largest unit in which it is a whole number. */
export function quantity(units, value) {
  if (!units) return number(value);
  const [unit, size] = units.find(([, each]) => value >= each && value % each === 0) ?? units.at(-1);
  return `${number(value / size)} ${unit}`;
}

/** Returns the number for a text such as `3 GiB`; a text without unit counts in the smallest one. Null if the text is
 * invalid. */
export function quantityIn(units, text) {
  const [, digits, unit] = ENTERED.exec(text.trim().replaceAll(",", "")) ?? [];
  const size = unit ? units.find(([each]) => each.toLowerCase() === unit.toLowerCase())?.[1] : 1;
  return digits === undefined || size === undefined ? null : Math.round(Number(digits) * size);
}

/** Returns the least and the greatest value in words; null without bounds. */
export function rangeOf(name, { minimum, exclusiveMinimum, maximum, exclusiveMaximum }) {
  const units = unitsOf(name);
  const low = minimum ?? exclusiveMinimum;
  const high = maximum ?? exclusiveMaximum;
  const words = (value) => quantity(units, value);
  if (high === undefined || high >= LARGEST) return low === undefined ? null : `${minimum === undefined ? "more than" : "from"} ${words(low)}`;
  return low === undefined ? `up to ${words(high)}` : `${words(low)} to ${words(high)}`;
}

const span = ({ start, end, days }) => `${days?.length ? days.map(sentence).join(", ") : "every day"} ${start} to ${end}`;

/** Returns windows as times of day. */
export const windowsInWords = (windows) => windows.map(span).join("; ");

/** Returns any value of a setting as text. */
export function shown(name, value) {
  if (value === null || value === undefined) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return quantity(unitsOf(name), value);
  if (!Array.isArray(value)) return typeof value === "string" ? value : JSON.stringify(value);
  if (!value.length) return name === "windows" ? "at any time" : "none";
  if (value.every((each) => each?.start && each?.end)) return windowsInWords(value);
  return value.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(", ");
}
