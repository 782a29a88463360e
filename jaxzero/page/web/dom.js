/** Small helpers to build elements. */

import { ICONS } from "./icons.js";

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
  return svg(
    "svg",
    { class: `sign side-${player}`, viewBox: "0 0 16 16", x, y, width: size, height: size, "aria-hidden": "true" },
    shape,
  );
}
