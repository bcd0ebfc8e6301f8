// REST calls. The browser adds the cookie of the session, which no script can read.

// The page is at the root of the service. A proxy may serve the service below a path of its own.
const ROOT = new URL(".", document.baseURI);
const TIMEOUT_MS = 10_000;
const NO_CONTENT = 204;
const SESSION = "v1/session";

/** The service answered with a problem document (RFC 9457). */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.title);
    this.status = status;
    this.problem = problem;
  }
}

/** The service did not answer, or is unavailable. `problem` is its answer, if any. */
export class Away extends Error {
  constructor(problem) {
    super("unavailable");
    this.problem = problem;
  }
}

export const pathOf = (path) => new URL(path, ROOT);

/** Gets the answer to a query. For a value that is a list, the parameter is repeated. */
export function get(path, query = {}) {
  const url = pathOf(path);
  for (const [name, value] of Object.entries(query)) for (const each of [value].flat()) if (each) url.searchParams.append(name, each);
  return call(url, {});
}

/** Gets the document at the path, and the tag of its state for `send`. */
export const getTagged = (path) => exchange(pathOf(path), {});

/** The answer of a call, or null if its object does not exist. */
export async function orNull(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}

/** Posts a call. `patience` is the time limit for the answer in milliseconds. */
export const post = (path, body, patience) => send("POST", path, body, null, patience);

/** The tag that stands for an object that does not exist yet. */
export const NEW = "new";

/** Sends a call. If a tag is given, the service refuses the call with status 412 if the object has changed since, or
 * exists although the tag is `NEW`. */
export function send(method, path, body, tag, patience) {
  return call(pathOf(path), {
    method,
    patience,
    body: body === undefined ? undefined : JSON.stringify(body),
    // While no tokens exist, the service requires the content type, even if there is no body.
    headers: { "Content-Type": "application/json", ...(tag && (tag === NEW ? { "If-None-Match": "*" } : { "If-Match": tag })) },
  });
}

/** Exchanges a token for the cookie of a session. The page keeps neither the token nor the cookie. */
export const logIn = (token) => call(pathOf(SESSION), { method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" } });

export const logOut = () => call(pathOf(SESSION), { method: "DELETE", headers: { "Content-Type": "application/json" } });

/** Returns the caller: its name, its role, and the way in which it was identified. */
export const whoAmI = () => get(SESSION);

/** Gets all items of a list, page by page. */
export async function all(path, query = {}) {
  const items = [];
  let cursor = null;
  do {
    const page = await get(path, { ...query, limit: 500, cursor });
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return items;
}

export const tablePath = (id) => `v1/tables/${encodeURIComponent(id)}`;
export const webhookPath = (id) => `v1/webhooks/${encodeURIComponent(id)}`;
export const deliveryPath = (id) => `v1/deliveries/${encodeURIComponent(id)}`;
export const jobPath = (id) => `v1/jobs/${encodeURIComponent(id)}`;

/** Makes a call that a person has requested, and then loads the page again. `failed` gets the problem of a failed
 * call. */
export async function attempt(call, changed, failed) {
  try {
    await call();
    changed();
  } catch (error) {
    failed(problemOf(error));
    changed.redraw();
  }
}

/** The title, detail and hint to show for any error. */
export function problemOf(error) {
  if (error.problem) return error.problem;
  if (error instanceof Away) return { title: "The service does not answer" };
  return { title: "The page failed", detail: String(error), hint: "Reload the page." };
}

const call = async (url, options) => (await exchange(url, options)).document;

async function exchange(url, { patience = TIMEOUT_MS, ...options }) {
  const headers = { Accept: "application/json", ...options.headers };
  let answer;
  let body;
  try {
    answer = await preloaded(url);
    answer ??= await fetch(url, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(patience) });
    body = await answer.text();
  } catch {
    throw new Away();
  }
  const document = answer.status === NO_CONTENT ? null : parsed(body);
  if (answer.ok && document !== undefined) return { document, tag: answer.headers.get("ETag") };
  const problem = document?.title ? document : { title: "The answer does not come from the service", detail: `HTTP ${answer.status}` };
  if (answer.status >= 500 || answer.ok) throw new Away(problem);
  throw new Refused(answer.status, problem);
}

/** Returns an answer that `preload.js` has requested, but only once. Returns undefined for any other call. */
function preloaded({ href }) {
  const answer = window.early?.get(href);
  window.early?.delete(href);
  return answer;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
