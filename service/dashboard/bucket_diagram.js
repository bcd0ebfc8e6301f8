// A diagram of a bucket expansion: bucket i of N becomes i, i+N, i+2N, ...; rows move to no other bucket. For a
// contraction, the diagram shows the inverse.

import { h, svg } from "./dom.js";

const MOST = 32;
const WIDTH = 640;
const HEIGHT = 96;

/** The diagram for the two numbers of a job's result, or null if there are too many buckets to draw. */
export function split(before, after) {
  const most = Math.max(before, after);
  const least = Math.min(before, after);
  if (most > MOST || most % least) return null;
  const words =
    after > before
      ? `Each of ${before} buckets is split in ${after / before}: bucket i becomes i, i + ${before} …`
      : `Every ${before / after} of ${before} buckets become one: i, i + ${after} … become bucket i`;
  return h("figure", { class: "split" }, picture(before, after, words), h("figcaption", {}, words));
}

function picture(before, after, words) {
  const upper = centres(before);
  const lower = centres(after);
  const room = WIDTH / Math.max(before, after);
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    centres(Math.max(before, after)).map((_, bucket) =>
      svg("path", { class: "curve", d: curve(upper[bucket % before], lower[bucket % after]) }),
    ),
    upper.map((x, bucket) => cell(x, 0, bucket, room)),
    lower.map((x, bucket) => cell(x, HEIGHT - 24, bucket, room, bucket >= before && "new")),
  );
}

const centres = (number) => Array.from({ length: number }, (_, bucket) => ((bucket + 0.5) * WIDTH) / number);

const curve = (from, to) => `M ${from} 24 C ${from} 52, ${to} 44, ${to} ${HEIGHT - 24}`;

function cell(x, y, bucket, room, kind) {
  const width = Math.min(room * 0.8, 48);
  return svg(
    "g",
    { class: kind ? `bucket ${kind}` : "bucket" },
    svg("rect", { x: x - width / 2, y, width, height: 24, rx: 4 }),
    svg("text", { x, y: y + 16, "text-anchor": "middle" }, String(bucket)),
  );
}
