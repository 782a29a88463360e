/** Teaching mode: a warning before a move that loses 2 or more boxes of margin, with the reasons. */

import { button, find, html, reveal, row } from "./dom.js";
import { t } from "./i18n.js";
import { lostWords } from "./outcome.js";
import { boxesBeside, boxesGiven, closedBy, freeBoxes, withEdge } from "./rules.js";

const WORTH_A_WARNING = 2; // boxes of margin
const NEAR_THE_END = 8; // safe edges; with more of them their parity proves nothing
const PATIENCE = 5000; // ms to wait for the analysis before the move is played without a warning

const isProven = ({ exact, bound }) => exact || bound;

/** Return a warning about a costly move, {edge, words, reasons, better}, or null. */
export async function warningAbout(edge, record, analysis) {
  const found = await analysis.judged(PATIENCE);
  const rated = found?.edges?.find((each) => each.edge === edge);
  if (!(rated?.lost >= WORTH_A_WARNING)) return null;
  const reasons = reasonsOf(record, rated, found);
  const words = t("teach.loses", { lost: lostWords(rated), proven: isProven(rated) });
  return { edge, words, reasons, better: analysis.bestEdge() };
}

/**
 * Return the reasons why a move is bad, as texts. `found` is the analysis.
 *
 * A reason is what the edge does to the boxes, or follows from the proven losses of other edges. If none applies, an estimate
 * is called one, and a proven loss stands for itself.
 */
export function reasonsOf(record, rated, found) {
  const { game } = record;
  const { drawn } = record.position;
  const reasons = [...givenReasons(game, drawn, rated.edge, found.structure), ...(isProven(rated) ? provenReasons(game, drawn, rated, found) : [])];
  return reasons.length || isProven(rated) ? reasons : [t("teach.other")];
}

/** Return what an edge that closes no box gives or leaves to the other side. */
function givenReasons(game, drawn, edge, structure) {
  if (closedBy(game, drawn, edge).length) return [];
  const free = freeBoxes(game, drawn);
  const reasons = free ? [t("teach.leaves", { n: free })] : [];
  const given = boxesGiven(game, drawn, edge);
  if (given <= free) return reasons;
  const beside = boxesBeside(game, edge);
  const opened = structure?.chains.find((chain) => !chain.free && chain.length > 2 && chain.boxes.some((box) => beside.includes(box)));
  if (!opened) return [...reasons, t("teach.gives", { n: given })];
  return [...reasons, t(opened.kind === "loop" ? "teach.loop" : "teach.chain", { n: opened.length })];
}

/** Return what the best edges do otherwise: leave the last boxes, give two firmly, or leave other safe edges. */
function provenReasons(game, drawn, rated, { edges }) {
  const best = edges.filter(({ lost, exact }) => exact && lost === 0);
  if (!best.length) return [];
  const closes = ({ edge }) => closedBy(game, drawn, edge).length > 0;
  if (closes(rated)) return best.some(closes) ? [] : [t("teach.takes")];
  if (rated.class === "half-hearted") {
    const beside = boxesBeside(game, rated.edge);
    const isFirm = (other) => other.class === "hard-hearted" && boxesBeside(game, other.edge).some((box) => beside.includes(box));
    return best.some(isFirm) ? [t("teach.half")] : [];
  }
  const [left, ...others] = [rated, ...best].map(({ edge }) => safeAfter(game, drawn, edge));
  const isParity = best.every((each) => each.class === "safe") && others.every((other) => (other - left) % 2);
  return rated.class === "safe" && isParity && left <= NEAR_THE_END ? [t("teach.parity", { n: left, better: others[0] })] : [];
}

/** Return how many safe edges are left after an edge is drawn. */
function safeAfter(board, drawn, edge) {
  const after = withEdge(drawn, edge);
  return [...after.keys()].filter((each) => !after[each] && !boxesGiven(board, after, each)).length;
}

/** Show the warning that the play holds in a panel beside the board, and the better edge on request. */
export function createTeacher({ play, onShow }) {
  const panel = find("#teach-panel");
  let shown = null;

  function render() {
    const { warning } = play.state;
    if (warning === shown) return; // replacing a pressed button would lose its click
    shown = warning;
    panel.hidden = !warning;
    if (!warning) return;
    const { edge, words, reasons, better } = warning;
    panel.replaceChildren(
      html("h2", {}, t("teach.title")),
      html("p", {}, words),
      ...reasons.map((reason) => html("p", {}, reason)),
      row(
        button("teach-back", t("teach.back"), play.unmark, { class: "primary" }),
        button("teach-show", t("learn.show"), () => onShow(better)),
        button("teach-anyway", t("teach.anyway"), () => play.press(edge)),
      ),
    );
    reveal(panel);
  }

  return { render };
}
