/** Small helpers to build elements, and the icons. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Return a button with a name for the tests and its words. */
export function button(name, words, onclick, attributes = {}) {
  return html("button", { onclick, "data-testid": name, ...attributes }, words);
}

export function row(...parts) {
  return html("div", { class: "row" }, parts);
}

export function find(selector, root = document) {
  return root.querySelector(selector);
}

export function findAll(selector, root = document) {
  return [...root.querySelectorAll(selector)];
}

export function icon(name) {
  const path = svg("path", { d: ICONS[name] });
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, path);
}

/** Put an icon into each element with a `data-icon` attribute. */
export function placeIcons(root = document) {
  for (const element of findAll("[data-icon]", root)) {
    element.prepend(icon(element.dataset.icon));
    element.removeAttribute("data-icon");
  }
}

/** Save a text or a Blob as a file with this name. */
export function download(content, type, name) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  html("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Replace the parts of an element. The focus stays on the part with the same id or name for the tests. */
export function refill(element, ...parts) {
  const { id, dataset } = element.contains(document.activeElement) ? document.activeElement : {};
  element.replaceChildren(...parts);
  if (id || dataset?.testid) find(id ? `#${id}` : `[data-testid="${dataset.testid}"]`, element)?.focus();
}

/** Replace the parts of an element if they differ: replacing a pressed button by an equal one would lose its click. */
export function replaceChanged(element, parts) {
  const fresh = html("div", {}, parts);
  if (fresh.innerHTML !== element.innerHTML) element.replaceChildren(...fresh.childNodes);
}

/** Scroll only as far as needed to show an element. */
export function reveal(element) {
  element.scrollIntoView({ block: "nearest" });
}

/** Return the sign of a side: a disc for the first player, a diamond for the second. In a picture it needs its centre, [x, y]. */
export function sideSign(player, size = 16, centre = []) {
  const [x, y] = centre.map((middle) => middle - size / 2);
  const shape =
    player === 0
      ? svg("circle", { cx: 8, cy: 8, r: 6 })
      : svg("path", { d: "M8 1 15 8 8 15 1 8Z" });
  return svg("svg", { class: `sign side-${player}`, viewBox: "0 0 16 16", x, y, width: size, height: size, "aria-hidden": "true" }, shape);
}

/** Outlines of the icons, drawn with round strokes on a field of 24 by 24. */
const ICONS = {
  plus: "M12 5v14M5 12h14",
  undo: "M9 7 4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  redo: "m15 7 5 5-5 5M20 12H10a6 6 0 0 0-6 6",
  again: "M20 5v5h-5M20 10a8 8 0 1 0 0 5",
  hint: "M9 18h6M10 21h4M12 3a6 6 0 0 0-4 10.5c.8.8 1 1.5 1 2.5h6c0-1 .2-1.7 1-2.5A6 6 0 0 0 12 3Z",
  analysis: "M4 20V10M10 20V4M16 20v-7M21 20H3",
  first: "M6 5v14M19 6l-8 6 8 6Z",
  back: "m15 5-7 7 7 7",
  forward: "m9 5 7 7-7 7",
  last: "M18 5v14M5 6l8 6-8 6Z",
  mistake: "M12 4v10M12 18.5v.5",
  play: "m8 5 11 7-11 7Z",
  pause: "M8 5v14M16 5v14",
  step: "m6 5 9 7-9 7ZM19 5v14",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  keyboard: "M3 6h18v12H3ZM7 10h.01M11 10h.01M15 10h.01M17 14h.01M7 14h6",
  language: "M3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Z",
  open: "M12 16V5M7 9l5-5 5 5M4 16v4h16v-4",
  save: "M12 4v11M7 11l5 5 5-5M4 16v4h16v-4",
  copy: "M9 9h11v11H9ZM5 15H4V4h11v1",
  share: "M8 12h8M10 8H7a4 4 0 0 0 0 8h3M14 8h3a4 4 0 0 1 0 8h-3",
  edit: "m4 20 1-5L16 4l4 4L9 19Z",
  games: "M5 4h14v16H5ZM9 8h6M9 12h6M9 16h3",
  close: "M6 6l12 12M18 6 6 18",
};
