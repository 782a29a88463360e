/**
 * The rules of Dots and Boxes as pure functions.
 *
 * A board is {rows, cols} in boxes. A game is {rows, cols, start, moves}. Edges are numbers:
 * first the horizontal ones row by row, then the vertical ones row by row.
 */

export const NOBODY = 2; // owner of a box that was closed before the game
export const SMALLEST_SIDE = 2; // boxes of a board in the dialog for a new game; a file can have fewer
export const LARGEST_SIDE = 9;

function horizontals({ rows, cols }) {
  return (rows + 1) * cols;
}

export function edgeCount(board) {
  return horizontals(board) + board.rows * (board.cols + 1);
}

export function boxCount({ rows, cols }) {
  return rows * cols;
}

/** Return the number of the edge of one kind ("h" or "v") in a row and a column. */
function edgeAt(board, kind, row, col) {
  return kind === "h" ? row * board.cols + col : horizontals(board) + row * (board.cols + 1) + col;
}

export function placeOf(board, edge) {
  const first = horizontals(board);
  if (edge < first) {
    return { kind: "h", row: Math.floor(edge / board.cols), col: edge % board.cols };
  }
  const width = board.cols + 1;
  return { kind: "v", row: Math.floor((edge - first) / width), col: (edge - first) % width };
}

export function edgeName(board, edge) {
  const { kind, row, col } = placeOf(board, edge);
  return `${kind}${row},${col}`;
}

/** Return the one or two boxes beside an edge. */
export function boxesBeside(board, edge) {
  const { kind, row, col } = placeOf(board, edge);
  const places = kind === "h" ? [[row - 1, col], [row, col]] : [[row, col - 1], [row, col]];
  return places
    .filter(([r, c]) => r >= 0 && r < board.rows && c >= 0 && c < board.cols)
    .map(([r, c]) => r * board.cols + c);
}

/** Return the edges of a box: top, bottom, left, right. */
function sidesOf(board, box) {
  const row = Math.floor(box / board.cols);
  const col = box % board.cols;
  return [edgeAt(board, "h", row, col), edgeAt(board, "h", row + 1, col), edgeAt(board, "v", row, col), edgeAt(board, "v", row, col + 1)];
}

function openSides(board, drawn, box) {
  return sidesOf(board, box).filter((edge) => !drawn[edge]);
}

/** Return how many sides of a box are drawn. */
export function drawnSides(board, drawn, box) {
  return 4 - openSides(board, drawn, box).length;
}

/** Return whether an edge would be the third side of a box. */
export function thirdSide(board, drawn, edge) {
  return boxesBeside(board, edge).some((box) => drawnSides(board, drawn, box) === 2);
}

/** Return the boxes that drawing an edge closes. */
export function closedBy(board, drawn, edge) {
  return boxesBeside(board, edge).filter((box) => {
    const open = openSides(board, drawn, box);
    return open.length === 1 && open[0] === edge;
  });
}

/** Return the position before any move: start edges drawn, boxes closed by them without an owner. */
function startPosition(game) {
  const drawn = new Uint8Array(edgeCount(game));
  for (const edge of game.start) drawn[edge] = 1;
  const owner = Array.from({ length: boxCount(game) }, (_, box) =>
    openSides(game, drawn, box).length ? -1 : NOBODY,
  );
  return { drawn, owner, score: [0, 0], player: 0, plies: [] };
}

/** Return the position after the first moves of a game, with the record of each ply. */
export function replay(game, plies = game.moves.length) {
  const position = startPosition(game);
  for (const edge of game.moves.slice(0, plies)) {
    const closed = closedBy(game, position.drawn, edge);
    const { player } = position;
    position.drawn[edge] = 1;
    for (const box of closed) position.owner[box] = player;
    position.score[player] += closed.length;
    position.plies.push({ edge, player, closed });
    if (!closed.length) position.player = 1 - player;
  }
  position.over = position.drawn.every(Boolean);
  return position;
}

/**
 * Return whether the first player wants an even number of long chains, and the number of moves that have closed two boxes.
 *
 * The long chains, these moves, the dots and the edges before the game make an even sum if the first player gets control.
 */
export function longChainRule({ rows, cols, start }, { owner, plies }) {
  const closed = owner.filter((each) => each === NOBODY).length; // each let its player move again
  const pairs = plies.filter((ply) => ply.closed.length === 2).length;
  return { even: ((rows + 1) * (cols + 1) + start.length - closed + pairs) % 2 === 0, pairs };
}

/** Return the edges of the last turn, which may close several boxes. */
export function lastTurn(plies) {
  const first = plies.findLastIndex(({ player }) => player !== plies.at(-1).player) + 1;
  return plies.slice(first).map(({ edge }) => edge);
}

/** Return whether a game can be shown: a board of a possible size, and each edge drawn at most once. */
export function isPossible(game) {
  const isSide = (side) => Number.isInteger(side) && side >= 1 && side <= LARGEST_SIDE;
  const isEdge = (edge) => Number.isInteger(edge) && edge >= 0 && edge < edgeCount(game);
  const drawn = [...game.start, ...game.moves];
  return isSide(game.rows) && isSide(game.cols) && drawn.every(isEdge) && new Set(drawn).size === drawn.length;
}

/** Return the edges, [{edge, closes}], that take all free boxes reached in turn from some boxes, by default from all. */
function captureRun(board, drawn, boxes = Array(boxCount(board)).keys()) {
  const now = Uint8Array.from(drawn);
  const run = [];
  const waiting = [...boxes];
  while (waiting.length) {
    const open = openSides(board, now, waiting.pop());
    if (open.length !== 1) continue;
    const [edge] = open;
    run.push({ edge, closes: closedBy(board, now, edge).length });
    now[edge] = 1;
    waiting.push(...boxesBeside(board, edge));
  }
  return run;
}

/** Return the edges that are drawn once another one is drawn. */
export function withEdge(drawn, edge) {
  const after = Uint8Array.from(drawn);
  after[edge] = 1;
  return after;
}

/** Return how many boxes the other side can take right after an edge is drawn. */
export function boxesGiven(board, drawn, edge) {
  return freeBoxes(board, withEdge(drawn, edge));
}

/** Return how many boxes the side to move can take in a row. */
export function freeBoxes(board, drawn) {
  return captureRun(board, drawn).reduce((sum, { closes }) => sum + closes, 0);
}

/**
 * Return the edges that follow a click on one edge of a free chain.
 *
 * They stop before the last two boxes of a chain (four of a loop), because leaving these boxes to
 * the other side is a decision. They take all boxes if no other box is left.
 */
export function followChain(board, drawn, edge) {
  if (!closedBy(board, drawn, edge).length) return [];
  const after = withEdge(drawn, edge);
  const run = captureRun(board, after, boxesBeside(board, edge));
  const edges = run.map((step) => step.edge);
  for (const each of edges) after[each] = 1;
  if (!run.length || after.every(Boolean)) return edges;
  const decision = run.at(-1).closes === 2 ? 3 : 2; // the last edge of a loop closes two boxes
  return edges.length >= decision ? edges.slice(0, edges.length - decision) : edges;
}

/** Return the edge of a simple player: take a free box, else give away the least. */
export function simpleEdge(board, drawn) {
  const [taken] = captureRun(board, drawn);
  if (taken) return taken.edge;
  const open = [...drawn.keys()].filter((edge) => !drawn[edge]);
  const given = open.map((edge) => boxesGiven(board, drawn, edge));
  return open[given.indexOf(Math.min(...given))];
}
