/** Small pictures of positions for the rules and the start page. */

import { sideSign, svg } from "./dom.js";
import { centreOf, dotsOf, edgeLine, frameOf } from "./geometry.js";

/** Draw a position: `ink` are old edges, `fresh` new edges [edge, player], `boxes` owned boxes [box, player]. */
function miniature(board, { ink = [], fresh = [], boxes = [] }) {
  return svg(
    "svg",
    { class: "miniature", viewBox: frameOf(board).viewBox, "aria-hidden": "true" },
    boxes.map(([box, player]) => ownedBox(board, box, player)),
    ink.map((edge) => edgeLine(board, edge, { class: "ink" })),
    fresh.map(([edge, player]) => edgeLine(board, edge, { class: `fresh side-${player}` })),
    svg("g", { class: "dots" }, dotsOf(board)),
  );
}

function ownedBox(board, box, player) {
  const [x, y] = centreOf(board, box);
  const tint = svg("rect", { x: x - 44, y: y - 44, width: 88, height: 88, rx: 8, class: `tint side-${player}` });
  return svg("g", {}, tint, sideSign(player, 36, [x, y]));
}

const TWO = { rows: 2, cols: 2 };

/** The rules in four pictures: draw, close, move again, count. Edges have the numbers of rules.js. */
export const RULES = [
  miniature.bind(null, TWO, { ink: [0, 9], fresh: [[2, 0]] }),
  miniature.bind(null, TWO, { ink: [0, 6, 2, 9], fresh: [[7, 0]], boxes: [[0, 0]] }),
  miniature.bind(null, TWO, { ink: [0, 6, 2, 9, 7], fresh: [[5, 0]], boxes: [[0, 0]] }),
  miniature.bind(null, TWO, { ink: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], boxes: [[0, 0], [1, 0], [2, 1], [3, 0]] }),
];

/** The picture beside the heading of the start page. */
export function heroPicture() {
  return miniature(
    { rows: 3, cols: 3 },
    { ink: [0, 1, 2, 3, 4, 9, 12, 13, 14, 15, 16, 17, 20, 23], fresh: [[6, 1], [22, 0]], boxes: [[0, 0], [1, 1], [3, 1]] },
  );
}
