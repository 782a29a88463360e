/** The board as SVG: drawing, pointer, keyboard and labels for screen readers. */

import { html, sideSign, svg } from "./dom.js";
import { centreOf, coordinatesOf, dotsOf, edgeLine, frameOf, MARGIN, middleOf, sizeOf, UNIT } from "./geometry.js";
import { t } from "./i18n.js";
import { boxCount, closedBy, drawnSides, edgeCount, NOBODY, placeOf, thirdSide } from "./rules.js";

const AT_DOT = 16; // units of the picture; a click this close to a dot is ambiguous and draws no edge
const AT_CENTRE = 18; // the same at the centre of a box
const HOLD = 450; // ms after which a touch describes an edge instead of drawing it
const FINGER = 44; // pixels; where edges are closer, a touch can mean another edge
const STILL = 10; // pixels that the finger may move during HOLD
const DRAWING = 130; // ms between the edges of one click in the animation
const SHOWING = 800; // ms for all edges of one click at most

/**
 * Put a board into an element.
 *
 * `onEdge(edge, mayMiss)` is called for a click, a touch, Enter or Space on any edge; `mayMiss` tells that a finger has touched
 * a board with small boxes. `onFocus(edge)` is called when an edge gets the focus or the pointer, and with null when it loses them. `onHold(edge)` is called when a finger stays on an edge.
 * `arrowsStep()` returns whether the arrow keys belong to the page; a board with keyboard focus keeps them.
 * `prefix` keeps the names of two boards on one page apart.
 */
export function createBoard(parent, { onEdge, onFocus = () => {}, onHold = null, arrowsStep = () => false, prefix = "" }) {
  let size = null;
  let edges = [];
  let boxes = [];
  let picture = null;
  let layers = {};
  let current = 0; // the edge that the Tab key reaches
  let byKeys = false; // `current` got the focus by the keyboard
  let hold = null; // the finger on an edge: {timer, x, y, read}

  function build(board) {
    size = { rows: board.rows, cols: board.cols };
    const { viewBox, width, height } = frameOf(size);
    boxes = Array.from({ length: boxCount(size) }, (_, box) => makeBox(box));
    edges = Array.from({ length: edgeCount(size) }, (_, edge) => makeEdge(edge));
    layers = {
      under: svg("g", { class: "under" }), // below the edges
      costs: svg("g", { class: "overlay" }),
      marks: svg("g", { class: "overlay" }),
    };
    picture = svg(
      "svg",
      { class: "board", viewBox, role: "group", "data-testid": `${prefix}board` },
      stripes(),
      svg("g", {}, boxes),
      layers.under,
      svg("g", {}, edges),
      layers.costs,
      svg("g", { class: "dots" }, dotsOf(size)),
      svg("g", { class: "coordinates", "aria-hidden": "true" }, coordinatesOf(size)),
      layers.marks,
    );
    picture.style.setProperty("--ratio", width / height);
    picture.addEventListener("keydown", onKey);
    picture.addEventListener("pointermove", ({ clientX, clientY }) => {
      if (hold && Math.hypot(clientX - hold.x, clientY - hold.y) > STILL) clearTimeout(hold.timer);
    });
    for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => clearTimeout(hold?.timer));
    picture.addEventListener("contextmenu", (event) => hold && event.preventDefault());
    parent.replaceChildren(picture);
    current = Math.min(current, edges.length - 1);
  }

  function stripes() {
    const line = svg("path", { d: "M0 0V14", class: "stripe" });
    const form = { id: `${prefix}stripes`, width: 14, height: 14, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
    return svg("defs", {}, svg("pattern", form, line));
  }

  function makeBox(box) {
    const [x, y] = centreOf(size, box);
    const half = UNIT / 2 - 9;
    const rect = { x: -half, y: -half, width: 2 * half, height: 2 * half, rx: 10 };
    return svg(
      "g",
      { class: "box", transform: `translate(${x} ${y})` },
      svg("g", { class: "inside" }, svg("rect", { ...rect, class: "tint" }), svg("rect", { ...rect, class: "pattern", fill: `url(#${prefix}stripes)` })),
    );
  }

  function makeEdge(edge) {
    return svg(
      "g",
      {
        class: "edge",
        role: "button",
        tabindex: "-1",
        "data-edge": edge,
        "data-testid": `${prefix}edge-${edge}`,
        onclick: ({ pointerType }) => press(edge, pointerType === "touch"),
        onpointerdown: (event) => touch(edge, event),
        onpointerenter: () => onFocus(edge),
        onpointerleave: ({ pointerType }) => pointerType === "touch" || onFocus(null),
        onfocus: () => focused(edge),
        onblur: () => onFocus(null),
      },
      svg("polygon", { class: "target", points: targetOf(edge) }),
      edgeLine(size, edge, { class: "ring" }),
      edgeLine(size, edge, { class: "guide" }),
      edgeLine(size, edge, { class: "ink", pathLength: 1 }),
    );
  }

  /** Return the clickable area of an edge: all points nearest to the edge, except those near a dot or the centre of a box. */
  function targetOf(edge) {
    const [x, y] = middleOf(size, edge);
    const flat = placeOf(size, edge).kind === "h";
    const [place, farthest] = flat ? [y, sizeOf(size)[1]] : [x, sizeOf(size)[0]];
    const half = UNIT / 2;
    const before = (place === 0 ? MARGIN : half) - AT_CENTRE;
    const after = (place === farthest ? MARGIN : half) - AT_CENTRE;
    const end = half - AT_DOT;
    const corners = [
      [-end, -AT_DOT], [-AT_CENTRE, -before], [AT_CENTRE, -before], [end, -AT_DOT],
      [end, AT_DOT], [AT_CENTRE, after], [-AT_CENTRE, after], [-end, AT_DOT],
    ]; // along the edge and across it
    const points = corners.map(([along, across]) => (flat ? [x + along, y + across] : [x + across, y + along]));
    return points.map((point) => point.join(",")).join(" ");
  }

  function focused(edge) {
    makeCurrent(edge);
    byKeys = edges[edge].matches(":focus-visible");
    onFocus(edge);
  }

  /** Start the timer of a touch. A finger that stays reads about the edge and does not draw it. */
  function touch(edge, { pointerType, clientX: x, clientY: y }) {
    clearTimeout(hold?.timer);
    hold = null;
    if (pointerType !== "touch" || !onHold) return;
    const mine = (hold = { x, y, read: false });
    mine.timer = setTimeout(() => {
      mine.read = true;
      onHold(edge);
    }, HOLD);
  }

  function press(edge, byTouch) {
    if (hold?.read) return;
    makeCurrent(edge);
    onEdge(edge, byTouch && picture.getScreenCTM().a * UNIT < FINGER);
  }

  function makeCurrent(edge) {
    edges[current].setAttribute("tabindex", "-1");
    current = edge;
    edges[current].setAttribute("tabindex", "0");
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") onEdge(current);
    else if (event.key.startsWith("Arrow") && arrowsStep() && !byKeys) return;
    else if (event.key.startsWith("Arrow")) moveTo(neighbour(current, event.key.slice(5)));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Return the next edge for an arrow key. Left and right stay in the row; up and down go to the next row of edges. */
  function neighbour(edge, way) {
    let [x, y] = middleOf(size, edge);
    if (way === "Left") x -= UNIT;
    else if (way === "Right") x += UNIT;
    else {
      y += (way === "Down" ? UNIT : -UNIT) / 2;
      x = placeOf(size, edge).kind === "h" ? x - UNIT / 2 : Math.min(x, sizeOf(size)[0] - UNIT) + UNIT / 2;
    }
    const found = edges.findIndex((_, other) => middleOf(size, other).join() === [x, y].join());
    return found < 0 ? edge : found;
  }

  function moveTo(edge) {
    makeCurrent(edge);
    edges[edge].focus();
  }

  /** Put the focus on the current edge, or on the first open one if that is drawn. */
  function focus() {
    const open = edges.findIndex((element) => !element.classList.contains("drawn"));
    if (open >= 0 && edges[current].classList.contains("drawn")) makeCurrent(open);
    edges[current]?.focus({ preventScroll: true });
  }

  /**
   * Show a position.
   *
   * `last` are the edges to mark as just drawn. `enabled` is false if no person can move. `editing` makes drawn
   * edges clickable too. `slowly` lets new edges appear one after another.
   */
  function show(board, position, { last = [], enabled = true, editing = false, slowly = false } = {}) {
    if (size?.rows !== board.rows || size.cols !== board.cols) build(board);
    const fresh = position.plies.filter(({ edge }) => !edges[edge].classList.contains("drawn"));
    fresh.forEach(({ edge, closed }, index) => {
      const wait = slowly ? Math.min(DRAWING, SHOWING / fresh.length) * index : 0;
      for (const element of [edges[edge], ...closed.map((box) => boxes[box])]) element.style.setProperty("--wait", `${wait}ms`);
    });
    const owners = new Map(position.plies.map(({ edge, player }) => [edge, player]));
    picture.setAttribute("aria-label", t("board.label", { rows: size.rows, cols: size.cols }));
    picture.classList.toggle("waits", !enabled);
    picture.classList.toggle("editing", editing);
    picture.dataset.player = position.player;
    edges.forEach((element, edge) => {
      const drawn = Boolean(position.drawn[edge]);
      element.classList.toggle("drawn", drawn);
      element.classList.toggle("last", last.includes(edge));
      for (const side of [0, 1]) element.classList.toggle(`side-${side}`, owners.get(edge) === side);
      element.setAttribute("aria-label", edgeLabel(size, position.drawn, edge));
      element.setAttribute("aria-disabled", String(!editing && (drawn || !enabled)));
      element.setAttribute("tabindex", edge === current ? "0" : "-1");
    });
    boxes.forEach((element, box) => showOwner(element, position.owner[box]));
  }

  function showOwner(element, owner) {
    const name = owner < 0 ? "" : String(owner);
    if (element.dataset.owner === name) return;
    element.dataset.owner = name;
    element.setAttribute("class", `box side-${name}`);
    element.querySelector(".sign")?.remove();
    if (owner < 0 || owner === NOBODY) return;
    element.firstChild.append(sideSign(owner, 34, [0, 0]));
  }

  return { show, focus, layers: () => layers };
}

/** List all boxes for screen readers with their owner or the number of sides drawn. */
export function boxItems(board, { drawn, owner }, nameOf) {
  return owner.map((player, box) => {
    const words = player < 0 ? t("box.open", { sides: drawnSides(board, drawn, box) }) : player === NOBODY ? t("box.nobody") : nameOf(player);
    return html("li", {}, t("box.of", { row: Math.floor(box / board.cols), col: box % board.cols, owner: words }));
  });
}

/** Say where an edge is and what drawing it does. */
function edgeLabel(board, drawn, edge) {
  const place = t(drawn[edge] ? "edge.drawn" : "edge.open", { place: edgeWords(board, edge) });
  const n = drawn[edge] ? 0 : closedBy(board, drawn, edge).length;
  if (n) return t("edge.closes", { place, n });
  return !drawn[edge] && thirdSide(board, drawn, edge) ? t("edge.third", { place }) : place;
}

export function edgeWords(board, edge) {
  const { kind, row, col } = placeOf(board, edge);
  return t(kind === "h" ? "edge.horizontal" : "edge.vertical", { row, col });
}
