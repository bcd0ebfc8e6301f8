// The settings of a policy in words.

import { h } from "./dom.js";
import { kindName } from "./format.js";
import { labelOf, shown } from "./quantities.js";

/** Returns a line for each kind of job, and one for the general settings. */
export function settingsInWords(settings) {
  const words = (name, section = "") => `${labelOf(name).toLowerCase()} ${shown(name, (section ? settings[section] : settings)[name])}`;
  const isSection = (name) => settings[name] !== null && typeof settings[name] === "object" && !Array.isArray(settings[name]);
  const names = Object.keys(settings);
  const general = names.filter((name) => !isSection(name));
  const lines = names.filter(isSection).map((section) => [kindName(section), Object.keys(settings[section]).map((name) => words(name, section))]);
  if (general.length) lines.unshift([null, general.map((name) => words(name))]);
  return lines.map(([title, each]) => h("div", { "data-key": title ?? "general" }, title && [h("strong", {}, title), ": "], each.join(", ")));
}
