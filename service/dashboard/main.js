// Selects the view, and polls to keep it current.

import { Away, problemOf, token } from "./api.js";
import { askForToken } from "./dialogs.js";
import { h, redraw } from "./dom.js";
import { jobPage } from "./job_page.js";
import { overview } from "./overview.js";
import { problem } from "./parts.js";
import { tablePage } from "./table_page.js";
import { webhooksPage } from "./webhooks_page.js";

const BUSY_MS = 1000;
const IDLE_MS = 3000;
const LONGEST_BACK_OFF_MS = 15_000;

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const notice = document.getElementById("notice");
const pulse = document.getElementById("pulse");

let view = null;
let failures = 0;
let needsToken = false;
let wake = () => {};
let isWoken = false;

/** For the views: polls at once after an action. `redraw` only redraws the known data. */
function changed(error) {
  if (error) {
    const dismiss = h("button", { type: "button", class: "small", onclick: () => show(notice) }, "Dismiss");
    show(notice, problem(problemOf(error)), dismiss);
  }
  draw();
  pollNow();
}
changed.redraw = draw;

function viewOf(hash) {
  const [, kind, id] = hash.split("/");
  if (kind === "tables" && id) return tablePage(decodeURIComponent(id), changed);
  if (kind === "jobs" && id) return jobPage(decodeURIComponent(id), changed);
  if (kind === "webhooks") return webhooksPage(changed);
  return overview(changed);
}

function navigate() {
  // The skip link and similar anchors are not views.
  if (view && location.hash && !location.hash.startsWith("#/")) return;
  const isFirst = view === null;
  show(notice);
  view = viewOf(location.hash);
  redraw(main, h("p", { class: "quiet" }, "Loading …"));
  if (!isFirst) {
    main.focus();
    scrollTo(0, 0);
  }
  pollNow();
}

function draw() {
  const nodes = view.draw();
  if (nodes.length) redraw(main, ...nodes);
  document.title = `${view.title()} · Groundskeeper`;
}

async function poll() {
  const polled = view;
  try {
    await polled.load();
    failures = 0;
    needsToken = false;
    if (polled !== view) return;
    draw();
    showState("live");
    show(banner);
    main.classList.remove("stale");
  } catch (error) {
    if (polled === view) failed(error);
  }
}

function failed(error) {
  failures += 1;
  if (error.status === 401) {
    needsToken = true;
    askForToken(token.get() && "That token is not valid.", pollNow);
    showState("no token");
    const again = h("button", { type: "button", onclick: () => askForToken(null, pollNow) }, "Enter a token");
    show(banner, h("div", {}, h("strong", {}, "This service requires a token. "), again));
  } else if (error instanceof Away) {
    showState("away");
    const again = h("button", { type: "button", onclick: pollNow }, "Try now");
    const words = h("p", {}, `This page may be out of date. Trying again in ${Math.round(delay() / 1000)} s. `, again);
    show(banner, problem(problemOf(error)), words);
  } else {
    showState("problem");
    show(banner, problem(problemOf(error)));
    redraw(main, h("p", { class: "card" }, h("a", { href: "#/" }, "Back to the overview")));
  }
  main.classList.add("stale");
}

/** Fills an area above the view, or hides it without nodes. */
function show(place, ...nodes) {
  place.hidden = !nodes.length;
  redraw(place, ...nodes);
}

function showState(state) {
  pulse.textContent = state;
  pulse.className = `pulse ${state.replace(" ", "-")}`;
  document.getElementById("forget").hidden = !token.get();
}

function delay() {
  if (failures) return Math.min(LONGEST_BACK_OFF_MS, 1000 * 2 ** (failures - 1));
  return view.isBusy() ? BUSY_MS : IDLE_MS;
}

function pollNow() {
  isWoken = true;
  wake();
}

function pause() {
  if (isWoken) return Promise.resolve();
  return new Promise((resolve) => {
    wake = resolve;
    // A hidden page and a missing token stop the polling; the end of either wakes the loop.
    if (!document.hidden && !needsToken) setTimeout(resolve, delay());
  });
}

async function run() {
  for (;;) {
    isWoken = false;
    await poll();
    await pause();
  }
}

document.getElementById("forget").onclick = () => {
  token.forget();
  location.reload();
};
document.addEventListener("visibilitychange", () => document.hidden || pollNow());
addEventListener("hashchange", navigate);
navigate();
run();
