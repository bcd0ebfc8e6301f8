// Requests the session and the data of the overview at once, while the browser loads the modules that show them. The
// module `api.js` uses the answers. This script is part of the page and is not a module, because a browser runs modules
// only after it has the whole page and its styles.
{
  window.early = new Map();
  const ask = (path) => {
    const url = new URL(path, document.baseURI).href;
    const answer = fetch(url, { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(10_000) });
    window.early.set(url, answer.catch(() => null));
  };
  if (["", "#", "#/"].includes(location.hash)) ask("v1/overview?brief=true");
  ask("v1/session");
  // A browser needs tens of milliseconds for the first use of `Intl`. Here the browser is idle anyway.
  Intl.DateTimeFormat();
}
