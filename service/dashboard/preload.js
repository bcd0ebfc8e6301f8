// Asks for the data of the overview at once, while the modules that show it are on their way. `api.js` takes the answer.
// Not a module: a browser runs those only after it has the whole page and its styles.

if (["", "#", "#/"].includes(location.hash)) {
  const url = new URL("v1/overview", document.baseURI).href;
  const answer = fetch(url, { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(10_000) });
  window.early = { url, answer: answer.catch(() => null) };
  // The first use of it takes a browser tens of milliseconds, which are idle now.
  Intl.DateTimeFormat();
}
