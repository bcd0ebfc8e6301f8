// Builds elements from data, and redraws the page without losing focus, typed text or open details.
// Data becomes text nodes and attributes only, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an element. Functions `on...` are its handlers; false, null and undefined omit an attribute or a child. */
export function h(name, properties, ...children) {
  return build(document.createElement(name), properties, children);
}

export function svg(name, properties, ...children) {
  return build(document.createElementNS(SVG, name), properties, children);
}

function build(element, properties, children) {
  element.handlers = {};
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (typeof value === "function") element.handlers[name] = element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== false && child != null));
  return element;
}

/** Makes the children of `shown` equal to `wanted`. Every matching element is reused. */
export function redraw(shown, ...wanted) {
  let at = shown.firstChild;
  for (const child of wanted.flat(Infinity).filter((each) => each !== false && each != null)) {
    const node = typeof child === "string" ? document.createTextNode(child) : child;
    const known = alike(at, node) ? at : later(at, node);
    if (!known) {
      shown.insertBefore(node, at);
    } else {
      if (known === at) at = at.nextSibling;
      else shown.insertBefore(known, at);
      update(known, node);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

const alike = (one, other) => one != null && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

const keyOf = (node) => node.dataset?.key;

/** Returns a later element with the key of `node`. */
function later(at, node) {
  if (!keyOf(node)) return null;
  let each = at;
  while (each && !alike(each, node)) each = each.nextSibling;
  return each;
}

function update(shown, wanted) {
  if (shown.nodeType === Node.TEXT_NODE) {
    if (shown.data !== wanted.data) shown.data = wanted.data;
    return;
  }
  for (const { name } of [...shown.attributes]) {
    // The user has opened this element.
    const isUserState = name === "open" && shown.nodeName === "DETAILS";
    if (!wanted.hasAttribute(name) && !isUserState) shown.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
  for (const name of Object.keys(shown.handlers ?? {})) shown[name] = null;
  shown.handlers = wanted.handlers ?? {};
  Object.assign(shown, shown.handlers);
  redraw(shown, ...wanted.childNodes);
}
