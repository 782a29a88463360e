/** The lessons: positions, solutions and judgements. */

export const good = (answer, values) => ({ answer, values, mood: "good" });
export const bad = (answer, values) => ({ answer, values, mood: "bad" });
const part = (answer, values) => ({ answer, values, mood: "part" });

/**
 * The lessons: a position, the first edges of a solution, and a function that judges a move of the learner, who is
 * player 0. "good" means solved, "bad" asks to start again, "part" or null lets the lesson go on.
 */
export const LESSONS = [
  {
    id: "close",
    game: { rows: 2, cols: 3, start: [0, 1, 3, 4, 9], moves: [] },
    solution: [10, 11],
    judge: ({ closed, score }) => {
      if (!closed) return bad("bad");
      return score[0] === 2 ? good("good") : part("part");
    },
  },
  {
    id: "safe",
    game: { rows: 3, cols: 3, start: [0, 2, 3, 4, 8, 9, 10, 15, 17, 20, 22], moves: [] },
    solution: [1],
    judge: ({ given }) => (given ? bad("gives", { n: given }) : good("good")),
  },
  {
    id: "chain",
    game: { rows: 3, cols: 3, start: [0, 1, 2, 3, 4, 5, 6, 7, 11, 19, 21, 23], moves: [] },
    solution: [20],
    judge: ({ given }) => (given > 1 ? bad("bad", { n: given }) : good("good", { n: given })),
  },
  {
    id: "double",
    game: { rows: 2, cols: 4, start: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], moves: [] },
    solution: [13, 14, 16],
    judge: handsBack(2, 2),
  },
  {
    id: "rule",
    game: { rows: 3, cols: 3, start: [0, 1, 2, 3, 9, 11, 14, 16, 18, 19, 21, 23], moves: [] },
    solution: [7, 8, 15, 10, 13, 12, 17, 6, 20],
    judge: (move) => (!move.ply && move.given ? bad("gives", { n: move.given }) : winsFrom(7)(move)),
  },
  {
    id: "loop",
    game: { rows: 3, cols: 4, start: [0, 1, 2, 5, 8, 9, 10, 12, 13, 14, 15, 16, 17, 19, 20, 21, 24, 25, 30], moves: [] },
    solution: [4, 18, 23],
    judge: handsBack(2, 4),
  },
  {
    id: "control",
    game: { rows: 3, cols: 3, start: [0, 3, 4, 6, 9, 10, 14, 15, 18, 19, 22, 23], moves: [] },
    solution: [13, 5, 11],
    judge: winsFrom(13),
  },
  {
    id: "quad",
    game: { rows: 3, cols: 3, start: [0, 1, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 23], moves: [] },
    solution: [17],
    judge: handsBack(0, 4),
  },
  {
    id: "battle",
    game: { rows: 3, cols: 3, start: [1, 2, 3, 7, 8, 9, 10, 12, 15, 16, 18, 23], moves: [] },
    solution: [17, 22, 20],
    judge: (move) => (!move.ply && move.given > 2 ? bad("gives", { n: move.given }) : winsFrom(17)(move)),
  },
];

/** Judge a lesson: take `taken` boxes, then leave the last `left` boxes to the other side with one edge. */
function handsBack(taken, left) {
  return ({ closed, score, given, crossed }) => {
    if (crossed) return null; // the final score decides
    if (!closed) return score[0] === taken && given === left ? part("cross") : bad("early");
    return score[0] > taken ? bad("bad") : part("part");
  };
}

/** Judge a lesson in which the first move must be the edge `first`; then the final score decides. */
function winsFrom(first) {
  return ({ edge, ply }) => (ply ? null : edge === first ? part("part") : bad("bad"));
}
