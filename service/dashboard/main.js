// Selects the view, and polls to keep it current.

import { Away, logOut, problemOf, whoAmI } from "./api.js";
import { auditPage } from "./audit_page.js";
import { h, redraw } from "./dom.js";
import { jobPage } from "./job_page.js";
import { loginPage } from "./login_page.js";
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
let login = null;
let caller = null;
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
  if (kind === "audit") return auditPage(changed);
  return overview(changed);
}

function navigate() {
  // The skip link and similar anchors are not views.
  if (view && location.hash && !location.hash.startsWith("#/")) return;
  const isFirst = view === null;
  show(notice);
  view = viewOf(location.hash);
  if (login) return;
  redraw(main, h("p", { class: "quiet" }, "Loading …"));
  if (!isFirst) {
    main.focus();
    scrollTo(0, 0);
  }
  pollNow();
}

function draw() {
  const nodes = (login ?? view).draw();
  if (nodes.length) redraw(main, ...nodes);
  document.title = `${login ? "Log in" : view.title()} · Groundskeeper`;
}

async function poll() {
  const polled = view;
  try {
    if (!caller) showCaller(await whoAmI());
    await polled.load();
    failures = 0;
    if (polled !== view) return;
    // Logged in again, perhaps in another tab.
    login = null;
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
    askForLogin(caller && "The session has ended.");
    return;
  }
  if (error instanceof Away) {
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

/** Shows the log-in in place of the view. Nothing is polled until it is done. */
function askForLogin(why) {
  if (login) return;
  const done = () => {
    login = null;
    failures = 0;
    redraw(main, h("p", { class: "quiet" }, "Loading …"));
    main.focus();
    pollNow();
  };
  login = loginPage(why, done, draw);
  showCaller(null);
  showState("logged out");
  show(banner);
  show(notice);
  main.classList.remove("stale");
  // Nothing of what the view has shown may stay.
  view = viewOf(location.hash);
  redraw(main);
  draw();
  main.querySelector("input").focus();
}

function showCaller(found) {
  caller = found;
  const who = document.getElementById("who");
  who.hidden = !found || found.way === "open";
  who.textContent = who.hidden ? "" : `${found.who} (${found.role})`;
  document.getElementById("log-out").hidden = found?.way !== "session";
  document.getElementById("audit").hidden = found?.role !== "admin";
}

/** Fills an area above the view, or hides it without nodes. */
function show(place, ...nodes) {
  place.hidden = !nodes.length;
  redraw(place, ...nodes);
}

function showState(state) {
  pulse.textContent = state;
  pulse.className = `pulse ${state.replace(" ", "-")}`;
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
  if (isWoken && !login) return Promise.resolve();
  return new Promise((resolve) => {
    wake = resolve;
    // A hidden page and a missing session stop the polling; the end of either wakes the loop.
    if (!document.hidden && !login) setTimeout(resolve, delay());
  });
}

async function run() {
  for (;;) {
    isWoken = false;
    await poll();
    await pause();
  }
}

document.getElementById("log-out").onclick = async () => {
  try {
    await logOut();
  } catch (error) {
    // A session that has ended already is no failure.
    if (error.status !== 401) return changed(error);
  }
  caller = null;
  askForLogin(null);
};
document.addEventListener("visibilitychange", () => document.hidden || pollNow());
addEventListener("hashchange", navigate);
navigate();
run();
