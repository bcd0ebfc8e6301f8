// Selects the view, and keeps it current. The view is loaded again after an event about a change, and polled only while
// a job makes progress, or while there is no stream of events.

import { Away, logOut, problemOf, whoAmI } from "./api.js";
import { h, redraw } from "./dom.js";
import { zone } from "./format.js";
import { loginPage } from "./login_page.js";
import { problem } from "./components.js";
import { listenToKeys } from "./keys.js";
import { fitMenu, listenToWindow } from "./menu.js";
import { learn } from "./role.js";
import { address, parsed } from "./route.js";
import { Stream } from "./stream.js";
import { viewOf } from "./views.js";

// The progress of a job is polled, because no events report progress.
const BUSY_MS = 2000;
// The view is polled while there is no stream of events.
const POLL_MS = 4000;
const LONGEST_BACK_OFF_MS = 15_000;
// Events come in bursts. All events within this time cause only one load of the view.
const BURST_MS = 200;
const MOST_OFTEN_MS = 1000;
// After an event, the service needs some time to compute the new state of a table and its problems.
const SETTLE_MS = 3000;
const MOST_LOADS_AFTER_EVENT = 5;
const STREAM_OPENS_MS = 400;
const REDRAW_MS = 15_000;

const STATES = {
  live: "Changes are shown as they happen",
  polling: "There is no stream of events, so the page asks every few seconds",
  away: "The service does not answer",
};

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const notice = document.getElementById("notice");
const pulse = document.getElementById("pulse");
const spoken = document.getElementById("spoken");

let view = null;
// The last view that was loaded.
let loadedView = null;
let path = null;
let failures = 0;
let login = null;
let caller = null;
let wake = () => {};
let isWoken = false;
let loadedAt = -Infinity;
// `eventAt` is the time of the last event whose consequences the view does not show yet. `loadsSinceEvent` counts the
// loads since that event.
let eventAt = null;
let loadsSinceEvent = 0;
let timer = null;
let dueAt = 0;
let isAwaited = false;
let spokenBefore = null;
const stream = new Stream(onEvent, onStreamChange);

/** Views call this after an action, to load at once. `redraw` only redraws the known data. `go` changes the query of
 * the address. A text that a user types replaces the address, so that the browser's history gets no entry for each
 * letter. */
function changed(error) {
  if (error) {
    const dismiss = h("button", { type: "button", class: "small", onclick: () => show(notice) }, "Dismiss");
    show(notice, problem(problemOf(error)), dismiss);
  }
  draw();
  loadsSinceEvent = 0;
  eventAt ??= 0;
  pollNow();
}
changed.redraw = draw;
changed.go = (query, { isTyped = false } = {}) => {
  const target = address(path, query);
  if (!isTyped) {
    location.hash = target;
    return;
  }
  history.replaceState(null, "", target);
  navigate();
};

function navigate() {
  // Anchors such as the skip link do not name views.
  if (view && location.hash && !location.hash.startsWith("#/")) return;
  const route = parsed(location.hash);
  if (view?.choose && !login && address(route.path, {}) === address(path, {})) {
    view.choose(route.query);
    pollNow();
    return;
  }
  const isFirst = view === null;
  show(notice);
  path = route.path;
  view = viewOf(route, changed);
  eventAt = null;
  spokenBefore = null;
  for (const each of document.querySelectorAll("header nav a")) {
    if (each.hash === address(path, {}) && each.pathname === location.pathname) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
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

/** Loads the view; with `isProgress`, only the parts that change without an event. */
async function poll(isProgress) {
  const polled = view;
  try {
    const load = async () => {
      // A view that knows the position of its data in the stream need not wait for the stream.
      if (!caller && !polled.position) await streamOpened();
      loadedAt = performance.now();
      await (isProgress && polled.refresh ? polled.refresh() : polled.load());
    };
    // The session and the data of the view are requested at the same time, because users notice each wait.
    const [found] = await Promise.all([caller ?? whoAmI(), load()]);
    if (!caller) showCaller(found);
    failures = 0;
    if (polled !== view) return;
    // A successful load shows that the user has logged in, perhaps in another tab.
    login = null;
    draw();
    speak();
    if (!document.hidden) openStream(polled);
    if (!isAwaited) showState(stream.isOpen ? "live" : "polling");
    show(banner);
    main.classList.remove("stale");
    if (loadedView !== polled) {
      loadedView = polled;
      // The first answer may be older than the last events. But the first call has made the service compute a new
      // answer, so the view is loaded again.
      if (polled.at) eventAt ??= polled.at() - SETTLE_MS;
    }
    if (!isProgress) loadUntilShown();
  } catch (error) {
    if (polled === view) failed(error);
  }
}

/** Opens the stream of events at the position of the view's data, so that no later event is missed. */
function openStream(polled) {
  if (stream.isStarted) return;
  if (!polled.position) {
    stream.open();
    return;
  }
  stream.position ??= String(polled.position());
  streamOpened().then(() => (stream.isOpen ? showState("live") : pollNow()));
}

/** Waits a moment before the first load, until the stream is open. Thus each change is either in the data or arrives as
 * an event. */
function streamOpened() {
  stream.open();
  isAwaited = true;
  return Promise.race([new Promise((resolve) => (stream.first = resolve)), new Promise((resolve) => setTimeout(resolve, STREAM_OPENS_MS))]).then(() => {
    isAwaited = false;
  });
}

function onStreamChange() {
  if (stream.isOpen) stream.first?.();
  if (login || document.hidden) return;
  // When the stream opens, events since the last load may be missing. When the stream ends, polling begins.
  if (!isAwaited) pollNow();
}

function onEvent(event) {
  if (path[0] === "tables" && event.subject && event.subject !== path[1]) return;
  eventAt = Math.max(eventAt ?? 0, Date.parse(event.time) || 0);
  loadsSinceEvent = 0;
  loadSoon(Math.max(BURST_MS, loadedAt + MOST_OFTEN_MS - performance.now()));
}

/** Loads the view again after an event. A view with the time of its data (`asOf`) is loaded until it shows the event's
 * consequences, but only a limited number of times; any other view is loaded once. */
function loadUntilShown() {
  if (eventAt === null) return;
  // `asOf` is NaN until the service has computed the data for the first time.
  const asOf = view.asOf?.();
  const isShown = asOf == null || !eventAt ? loadsSinceEvent > 0 : asOf >= eventAt + SETTLE_MS - BUSY_MS / 2;
  if (isShown || (loadsSinceEvent >= MOST_LOADS_AFTER_EVENT && !Number.isNaN(asOf))) {
    eventAt = null;
    return;
  }
  loadsSinceEvent += 1;
  loadSoon(SETTLE_MS);
}

function loadSoon(delay) {
  const at = performance.now() + delay;
  if (timer && dueAt <= at) return;
  clearTimeout(timer);
  dueAt = at;
  timer = setTimeout(() => {
    timer = null;
    if (!document.hidden) pollNow();
  }, delay);
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
    main.classList.add("stale");
  } else {
    showState("error");
    show(banner, problem(problemOf(error)));
    redraw(main, h("p", { class: "card" }, h("a", { href: "#/" }, "Back to the overview")));
    main.classList.remove("stale");
  }
}

/** Shows the log-in in place of the view. Nothing is polled until the user has logged in. */
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
  stream.close();
  showCaller(null);
  showState("logged out");
  show(banner);
  show(notice);
  main.classList.remove("stale");
  // A new view is made, so that no data of the old session is shown.
  view = viewOf(parsed(location.hash), changed);
  redraw(main);
  draw();
  main.querySelector("button, input").focus();
}

function showCaller(found) {
  caller = found;
  learn(found);
  const who = document.getElementById("who");
  who.hidden = !found || found.way === "open";
  who.textContent = who.hidden ? "" : `${found.who} (${found.role})`;
  document.getElementById("log-out").hidden = found?.way !== "session";
  for (const name of ["audit", "register"]) document.getElementById(name).hidden = found?.role !== "admin";
  fitMenu();
}

/** Fills an area above the view with nodes. Hides the area if there are no nodes. */
function show(place, ...nodes) {
  place.hidden = !nodes.length;
  redraw(place, ...nodes);
}

function showState(state) {
  if (pulse.textContent === state) return;
  pulse.textContent = state;
  pulse.className = `pulse ${state.replace(" ", "-")}`;
  pulse.title = STATES[state] ?? "";
}

/** Reports changes to users of screen readers. */
function speak() {
  const words = view.says?.() ?? "";
  if (spokenBefore !== null && spokenBefore !== words) spoken.textContent = words;
  spokenBefore = words;
}

/** Returns the pause before the next poll in milliseconds; null if only an event can change anything. */
function delay() {
  if (failures) return Math.min(LONGEST_BACK_OFF_MS, 1000 * 2 ** (failures - 1));
  if (view.isBusy?.()) return BUSY_MS;
  return stream.isOpen || isAwaited ? null : POLL_MS;
}

function pollNow() {
  isWoken = true;
  wake();
}

/** Waits until the next poll is due. Returns whether only the progress is due. */
function nextPoll() {
  if (isWoken && !login) return Promise.resolve(false);
  return new Promise((resolve) => {
    wake = () => resolve(false);
    const after = delay();
    // The loop stops while the page is hidden or the session is missing. `wake` starts the loop again.
    if (!document.hidden && !login && after !== null) setTimeout(() => resolve(stream.isOpen && !failures), after);
  });
}

async function run() {
  let isProgress = false;
  for (;;) {
    isWoken = false;
    await poll(isProgress);
    isProgress = await nextPoll();
  }
}

document.getElementById("log-out").onclick = async () => {
  try {
    const { log_out_url: url } = await logOut();
    if (url) return location.assign(url);
  } catch (error) {
    // If the session has already ended, the log-out has succeeded.
    if (error.status !== 401) return changed(error);
  }
  caller = null;
  askForLogin(null);
};
document.addEventListener("visibilitychange", () => {
  // A browser has few connections to one host, so a hidden page keeps none.
  if (document.hidden) {
    stream.close();
  } else if (!login) {
    stream.open();
    pollNow();
  }
});
// Texts such as "3 min ago" are drawn again, because time passes.
setInterval(() => {
  if (!document.hidden && !login && !failures && view) draw();
}, REDRAW_MS);
addEventListener("hashchange", navigate);
listenToKeys();
listenToWindow();
navigate();
run();
// The time zone is filled in now, while the page waits for its first answer.
document.getElementById("zone").textContent = zone();
