// The state of the installation in one line. Each figure is a link to a list of the counted objects.

import { h } from "./dom.js";
import { count, number, plural } from "./format.js";
import { link } from "./components.js";
import { address } from "./route.js";

/** `found` is the answer of the overview. */
export function stateLine({ problems: { counts, as_of: asOf }, jobs, incidents, workers, webhooks, pause }) {
  const ill = webhooks.failing + webhooks.disabled;
  const unresolved = incidents.open + incidents.suspected;
  const { default: forecast, ...others } = jobs.forecast;
  const inShort = (text) => text.replace(/^[\d,]+ queued[,;]? ?|; a guess$/g, "");
  const expected = [forecast && inShort(forecast), ...Object.entries(others).map(([group, text]) => `${group}: ${inShort(text)}`)].filter(Boolean);
  return h(
    "ul",
    { class: "figures", "data-key": "figures", "aria-label": "Figures" },
    ...(asOf ? severities(counts) : [h("li", { "data-key": "counting" }, "The problems are being counted")]),
    figure("incidents", unresolved, plural(unresolved, "incident"), address([], { kind: "incident-standing" }), incidents.open && "bad"),
    figure("running", jobs.leased + jobs.running, "running", address(["jobs"], { state: "running" })),
    figure("queued", jobs.queued, expected.length ? `queued, ${expected.join("; ")}` : "queued", address(["jobs"], { state: "queued" }), "long"),
    figure("workers", workers.alive, `${plural(workers.alive, "worker")}, ${taken(workers)}`, address(["workers"], {}), workers.alive ? "long" : "warn"),
    figure("webhooks", webhooks.total, `${plural(webhooks.total, "webhook")}${ill ? `, ${number(ill)} failing` : ""}`, address(["webhooks"], {}), ill && "warn"),
    pause.paused && h("li", { class: "warn", "data-key": "paused" }, link(address(["workers"], {}), "Automatic jobs are paused")),
  );
}

const severities = (counts) => [
  figure("critical", counts.critical, "critical", address([], { health: "critical" }), counts.critical && "bad"),
  figure("warnings", counts.warning, plural(counts.warning, "warning"), address([], { health: "warning" }), counts.warning && "warn"),
  figure("notices", counts.notice, plural(counts.notice, "notice"), address([], { health: "notice" }), counts.notice && "note"),
];

/** Says how many slots are taken. Submitted jobs may use spare slots, so more jobs may run than there are slots. */
const taken = ({ busy, slots }) => `${Math.min(busy, slots)} of ${count(slots, "slot")} taken${busy > slots ? ` and ${count(busy - slots, "more job", "more jobs")}` : ""}`;

function figure(key, value, words, where, look) {
  return h("li", { class: look || null, title: look === "long" ? `${number(value)} ${words}` : null, "data-key": key }, link(where, h("strong", {}, number(value)), " ", words));
}
