/** Drawings of the analysis on the board: losses of edges, chains, a line, a hint. */

import { sideSign, svg } from "./dom.js";
import { centreOf, endsOf, middleOf, UNIT } from "./geometry.js";
import { boxesBeside, replay } from "./rules.js";

const STEPS = [0.1, 0.75, 1.5, 3]; // boxes of margin lost where the next colour begins

/** Return the CSS class of a loss of margin: cost-0 is best, cost-4 is worst, cost-none is not known. */
export function costClass(lost) {
  if (lost === null || lost === undefined) return "cost-none";
  return `cost-${STEPS.filter((step) => lost >= step).length}`;
}

function formatLost({ lost, bound }) {
  const rounded = lost < 9.95 ? Math.round(lost * 10) / 10 : Math.round(lost);
  return `${bound ? "≥" : "−"}${rounded}`;
}

export const isBest = ({ lost }) => lost < STEPS[0];

/** Draw the loss of each edge as a colour and a number. */
export function drawCosts(layer, board, edges) {
  layer.replaceChildren(
    ...edges.map(({ edge, lost }) => openLine(board, edge, `cost ${costClass(lost)}`)),
    ...edges.filter((edge) => edge.lost !== null).map((edge) => drawNumber(board, edge)),
  );
}

/** Return a line along an edge that is not drawn: it ends before the dots. */
function openLine(board, edge, style) {
  const [x1, y1, x2, y2] = endsOf(board, edge);
  const [dx, dy] = [0.17 * (x2 - x1), 0.17 * (y2 - y1)];
  return svg("line", { x1: x1 + dx, y1: y1 + dy, x2: x2 - dx, y2: y2 - dy, class: style });
}

function drawNumber(board, edge) {
  const guess = edge.exact === false && !edge.bound ? "guess" : "";
  const text = isBest(edge) ? "★" : formatLost(edge);
  const width = isBest(edge) ? 34 : 12 + 12 * text.length;
  return svg(
    "g",
    { class: `number ${guess} ${costClass(edge.lost)}`, transform: `translate(${middleOf(board, edge.edge).join(" ")})` },
    svg("rect", { x: -width / 2, y: -14, width, height: 28, rx: 14 }),
    svg("text", { y: 6.5 }, text),
  );
}

/** Outline chains and loops as tubes through their boxes, with their lengths. */
export function drawChains(layer, board, drawn, chains) {
  layer.replaceChildren(...chains.map((chain) => drawChain(board, drawn, chain)));
}

function drawChain(board, drawn, chain) {
  const inside = new Set(chain.boxes);
  const path = [...drawn.keys()]
    .filter((edge) => !drawn[edge])
    .map((edge) => boxesBeside(board, edge))
    .filter((boxes) => boxes.length === 2 && boxes.every((box) => inside.has(box)))
    .map((boxes) => boxes.map((box) => centreOf(board, box).join(" ")))
    .map(([from, to]) => `M${from}L${to}`)
    .concat(chain.boxes.map((box) => `M${centreOf(board, box).join(" ")}h.01`))
    .join("");
  const [x, y] = centreOf(board, chain.boxes[Math.floor(chain.boxes.length / 2)]);
  return svg(
    "g",
    { class: `chain ${chain.kind} ${chain.free ? "free" : ""} ${chain.length > 2 ? "long" : ""}` },
    svg("path", { d: path, class: "outline" }),
    svg("path", { d: path, class: "body" }),
    chain.free ? null : svg("text", { x, y: y + 10 }, chain.kind === "loop" ? `○${chain.length}` : String(chain.length)),
  );
}

/** Draw the moves of a line as numbered ghost edges. */
export function drawLine(layer, game, line) {
  const { plies } = replay({ ...game, moves: [...game.moves, ...line] });
  const shown = plies.slice(game.moves.length);
  layer.replaceChildren(
    ...shown.flatMap((ply, index) => {
      const [x, y] = middleOf(game, ply.edge);
      return [
        openLine(game, ply.edge, `ghost side-${ply.player}`),
        svg(
          "g",
          { class: `ghost-number side-${ply.player}`, transform: `translate(${x} ${y})` },
          sideSign(ply.player, 46, [0, 0]),
          svg("text", { y: 8 }, String(index + 1)),
        ),
      ];
    }),
  );
}

/** Point at one edge. */
export function drawHint(layer, board, edge, player) {
  const [x, y] = middleOf(board, edge);
  layer.replaceChildren(
    openLine(board, edge, `hint side-${player}`),
    svg("circle", { cx: x, cy: y, r: UNIT * 0.2, class: "hint-spot" }),
    sideSign(player, 26, [x, y]),
  );
}

export function clear(layers) {
  for (const layer of Object.values(layers)) layer.replaceChildren();
}
