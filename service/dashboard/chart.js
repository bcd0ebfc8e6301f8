// Parts of charts. A chart is drawn without measuring the page: its shapes stretch to the available width. All text is
// beside the shapes. Each shape has a sentence for screen readers.

import { h, svg } from "./dom.js";
import { brief, moment } from "./format.js";
import { grid } from "./components.js";

/** The width of a drawing in its own units, which do not depend on its width on the page. */
export const WIDTH = 1000;
const HEIGHT = 100;

/** Returns a drawing that stretches. `words` describe it for screen readers. */
export function drawing(className, words, ...shapes) {
  return svg(
    "svg",
    { class: className, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
    ...shapes,
  );
}

/** Returns a box from the top to the bottom of a drawing, or over a part of that height. The browser shows `words` when
 * the pointer is on the box. */
export const box = (className, x, width, words, { y = 0, height = HEIGHT } = {}) => svg("rect", { class: className, x: round(x), width: round(width), y: round(y), height: round(height) }, words && svg("title", {}, words));

/** Returns a line that keeps each value until the next one, and the area below the line. Points are [x, share of the
 * height]. */
export function steps(points) {
  const corners = points.flatMap(([x, share], index) => {
    const y = round(HEIGHT * (1 - share));
    return index ? [`H ${round(x)}`, `V ${y}`] : [`M ${round(x)} ${y}`];
  });
  const [first] = points[0];
  const line = [...corners, `H ${WIDTH}`].join(" ");
  return [
    svg("path", { class: "area", d: `${line} V ${HEIGHT} H ${round(first)} Z` }),
    svg("path", { class: "line", d: line, "vector-effect": "non-scaling-stroke" }),
  ];
}

/** Returns rows, each with a name, a drawing, and a few words after it. */
export function tracks(rows) {
  return h(
    "div",
    { class: "tracks" },
    ...rows.map(({ key, name, picture, words }) =>
      h(
        "div",
        { class: "track", "data-key": key },
        h("span", { class: "track-name", title: name }, name),
        picture,
        h("span", { class: "track-words" }, words),
      ),
    ),
  );
}

/** Lines across a drawing where the axis of its values has ticks. */
export const ticks = () => [0, 0.5, 1].map((share) => svg("path", { class: "tick", d: `M 0 ${HEIGHT * share} H ${WIDTH}`, "vector-effect": "non-scaling-stroke" }));

/** Returns a drawing with its axes: words at the top, the middle and the bottom, and moments below. */
export function plot([top, middle, bottom], from, to, picture) {
  const moments = [0, 0.5, 1].map((share) => from + (to - from) * share);
  return h(
    "div",
    { class: "plot" },
    h("div", { class: "axis", "aria-hidden": "true" }, h("span", {}, top), h("span", {}, middle), h("span", {}, bottom)),
    picture,
    h("div", { class: "moments" }, ...moments.map((each, index) => h("time", { "data-key": String(index), datetime: new Date(each).toISOString() }, brief(each, to - from)))),
  );
}

/** Returns the end of an axis for values up to `most`: 1, 2 or 5 times a power. */
export function rounded(most, power) {
  const unit = power ** Math.floor(Math.log(most || 1) / Math.log(power) + 1e-9);
  const steps = power === 2 ? [1, 1.25, 1.5, 2] : [1, 2, 5, 10];
  return unit * steps.find((each) => each * unit >= most * (1 - 1e-9));
}

/** The ends of an axis of time. */
export function span(from, to) {
  return h(
    "p",
    { class: "span", "data-key": "span" },
    h("time", { datetime: new Date(from).toISOString() }, moment(from)),
    h("time", { datetime: new Date(to).toISOString() }, moment(to)),
  );
}

/** The place of a moment between two others, in units across. */
export function scale(from, to) {
  const length = Math.max(1, to - from);
  return (at) => Math.min(WIDTH, Math.max(0, ((at - from) / length) * WIDTH));
}

/** The same numbers as a table, which opens on demand. */
export const asTable = (label, headings, rows) => h("details", { "data-key": "as table" }, h("summary", {}, "As a table"), h("div", { class: "scroll" }, grid(label, headings, rows)));

const round = (value) => Math.round(value * 100) / 100;
