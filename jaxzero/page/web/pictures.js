/** Small pictures of positions for the rules and the start page. */

import { sideSign, svg } from "./dom.js";
import { centreOf, endsOf, UNIT } from "./geometry.js";

const PAD = 24;

/** Draw a position: `ink` are old edges, `fresh` new edges [edge, player], `boxes` owned boxes [box, player]. */
function miniature(board, { ink = [], fresh = [], boxes = [] }) {
  const width = board.cols * UNIT + 2 * PAD;
  const height = board.rows * UNIT + 2 * PAD;
  return svg(
    "svg",
    { class: "miniature", viewBox: `${-PAD} ${-PAD} ${width} ${height}`, "aria-hidden": "true" },
    boxes.map(([box, player]) => ownedBox(board, box, player)),
    ink.map((edge) => line(board, edge, "ink")),
    fresh.map(([edge, player]) => line(board, edge, `fresh side-${player}`)),
    dots(board),
  );
}

function line(board, edge, name) {
  const [x1, y1, x2, y2] = endsOf(board, edge);
  return svg("line", { x1, y1, x2, y2, class: name });
}

function ownedBox(board, box, player) {
  const [x, y] = centreOf(board, box);
  const sign = sideSign(player, 36);
  sign.setAttribute("x", x - 18);
  sign.setAttribute("y", y - 18);
  const tint = svg("rect", { x: x - 44, y: y - 44, width: 88, height: 88, rx: 8, class: `tint side-${player}` });
  return svg("g", {}, tint, sign);
}

function dots({ rows, cols }) {
  const all = [];
  for (let row = 0; row <= rows; row++) {
    for (let col = 0; col <= cols; col++) all.push(svg("circle", { cx: col * UNIT, cy: row * UNIT, r: 9, class: "dot" }));
  }
  return all;
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
