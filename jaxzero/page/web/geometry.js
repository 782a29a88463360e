/** Positions of the parts of a board in its picture, turned and flipped as in the settings. */

import { svg } from "./dom.js";
import { placeOf } from "./rules.js";
import { settings } from "./settings.js";

export const UNIT = 100; // length of an edge in the units of the picture
export const MARGIN = 46;

/** Return where the picture shows a point; `col` and `row` count from the top left of the board. */
function seen({ rows, cols }, col, row) {
  let [x, y, width, height] = [settings.flip ? cols - col : col, row, cols, rows];
  for (let turn = 0; turn < settings.turn; turn++) [x, y, width, height] = [height - y, x, height, width];
  return [x * UNIT, y * UNIT];
}

/** Return the width and the height of a board in its picture. */
export function sizeOf({ rows, cols }) {
  return (settings.turn % 2 ? [rows, cols] : [cols, rows]).map((side) => side * UNIT);
}

/** Return the viewBox of a picture, and its width and height. */
export function frameOf(board) {
  const [width, height] = sizeOf(board).map((side) => side + 2 * MARGIN);
  return { viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, width, height };
}

/** Return both ends of an edge in the picture: [x1, y1, x2, y2]. */
export function endsOf(board, edge) {
  const { kind, row, col } = placeOf(board, edge);
  const second = kind === "h" ? seen(board, col + 1, row) : seen(board, col, row + 1);
  return [...seen(board, col, row), ...second];
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
  return seen(board, (box % board.cols) + 0.5, Math.floor(box / board.cols) + 0.5);
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
    const [x, y] = seen(board, col, row);
    return svg("text", { x, y: y + letters / 3, "font-size": letters }, String(number));
  };
  const rows = [...Array(board.rows + 1).keys()].map((row) => label(-0.3, row, row));
  const cols = [...Array(board.cols + 1).keys()].map((col) => label(col, -0.29, col));
  return [...rows, ...cols];
}
