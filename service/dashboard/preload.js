// Asks at once for who is there, and for the data of the overview, while the modules that show them are on their way.
// `api.js` takes the answers. Part of the page itself, and not a module: a browser runs those only after it has the whole
// page and its styles.
{
  window.early = new Map();
  const ask = (path) => {
    const url = new URL(path, document.baseURI).href;
    const answer = fetch(url, { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(10_000) });
    window.early.set(url, answer.catch(() => null));
  };
  if (["", "#", "#/"].includes(location.hash)) ask("v1/overview");
  ask("v1/session");
  // The first use of it takes a browser tens of milliseconds, which are idle now.
  Intl.DateTimeFormat();
}
