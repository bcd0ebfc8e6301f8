// The menu in one line: the last links move into "More" if the window is too narrow for all of them.

const nav = document.querySelector("header nav");
const more = document.getElementById("more");
const links = [...nav.querySelectorAll(":scope > a")];

/** Fits the menu to the window, also after links were shown or hidden. A link that is moved loses the focus, so the
 * focus is set again. */
export function fitMenu() {
  const focused = document.activeElement;
  more.before(...links);
  more.hidden = true;
  const fits = () => nav.scrollWidth <= nav.clientWidth;
  for (let kept = links.length - 1; kept > 0 && !fits(); kept -= 1) {
    more.hidden = false;
    more.lastElementChild.prepend(links[kept]);
  }
  if (!links.includes(focused)) return;
  focused.focus();
  if (document.activeElement !== focused) more.firstElementChild.focus();
}

export function listenToWindow() {
  new ResizeObserver(fitMenu).observe(nav);
  const close = (event) => {
    const isInside = more.contains(event.target);
    if (event.key === "Escape" && isInside) more.firstElementChild.focus();
    if (event.key === "Escape" || !isInside || event.target.closest("a")) more.open = false;
  };
  for (const type of ["click", "keydown"]) addEventListener(type, (event) => (type === "click" || event.key === "Escape") && close(event));
}
