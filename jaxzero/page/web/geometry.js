/** Positions of the parts of a board in its picture. */

import { svg } from "./dom.js";
import { placeOf } from "./rules.js";

export const UNIT = 100; // length of an edge in the units of the picture
export const MARGIN = 46;

/** Return the width and the height of a board in its picture. */
export function sizeOf({ rows, cols }) {
  return [cols * UNIT, rows * UNIT];
}

/** Return the viewBox of a picture, and its width and height. */
export function frameOf(board) {
  const [width, height] = sizeOf(board).map((side) => side + 2 * MARGIN);
  return { viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, width, height };
}

/** Return both ends of an edge in the picture: [x1, y1, x2, y2]. */
export function endsOf(board, edge) {
  const { kind, row, col } = placeOf(board, edge);
  const [x, y] = [col * UNIT, row * UNIT];
  return kind === "h" ? [x, y, x + UNIT, y] : [x, y, x, y + UNIT];
}

/** Return a line along an edge. */
export function edgeLine(board, edge, attributes) {
  const [x1, y1, x2, y2] = endsOf(board, edge);
  return svg("line", { x1, y1, x2, y2, ...attributes });
}

export function middleOf(board, edge) {
  const [x1, y1, x2, y2] = endsOf(board, edge);
  return [(x1 + x2) / 2, (y1 + y2) / 2];
}

export function centreOf(board, box) {
  return [((box % board.cols) + 0.5) * UNIT, (Math.floor(box / board.cols) + 0.5) * UNIT];
}

export function dotsOf(board) {
  const [width, height] = sizeOf(board);
  const dots = [];
  for (let y = 0; y <= height; y += UNIT) {
    for (let x = 0; x <= width; x += UNIT) dots.push(svg("circle", { cx: x, cy: y, r: 8 }));
  }
  return dots;
}

/** Number the rows and columns of dots: an edge is named after the first of its two dots. */
export function coordinatesOf(board) {
  const letters = 6 + 2.6 * Math.max(board.rows, board.cols); // about equal on the screen for all boards
  const label = (col, row, number) => {
    return svg("text", { x: col * UNIT, y: row * UNIT + letters / 3, "font-size": letters }, String(number));
  };
  const rows = [...Array(board.rows + 1).keys()].map((row) => label(-0.3, row, row));
  const cols = [...Array(board.cols + 1).keys()].map((col) => label(col, -0.29, col));
  return [...rows, ...cols];
}
