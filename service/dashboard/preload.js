// Requests the data of the overview at once, while the browser loads the modules that show it. `api.js` takes the
// answer. This file is not a module, because a browser runs modules only after it has the whole page and its styles.

if (["", "#", "#/"].includes(location.hash)) {
  const url = new URL("v1/overview", document.baseURI).href;
  const answer = fetch(url, { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(10_000) });
  window.early = { url, answer: answer.catch(() => null) };
  // The first use of `Intl` takes a browser tens of milliseconds, which are idle now.
  Intl.DateTimeFormat();
}
