/** Teaching mode: a warning before a move that loses 2 or more boxes of margin, with the reasons. */

import { button, find, html, reveal, row } from "./dom.js";
import { t } from "./i18n.js";
import { boxesBeside, boxesGiven, closedBy, freeBoxes } from "./rules.js";

const WORTH_A_WARNING = 2; // boxes of margin
const NEAR_THE_END = 8; // safe edges; with more of them their parity proves nothing
const PATIENCE = 5000; // ms to wait for the analysis before the move is played without a warning

/** Return a warning about a costly move, {edge, lost, reasons, better}, or null. */
export async function warningAbout(edge, record, analysis) {
  const found = await analysis.known(PATIENCE);
  const rated = found?.edges?.find((each) => each.edge === edge);
  if (!(rated?.lost >= WORTH_A_WARNING)) return null;
  const reasons = reasonsOf(record, rated, found.structure);
  return { edge, lost: rated.lost, exact: rated.exact, reasons, better: analysis.bestEdge() };
}

/** Return the reasons why a move is bad, as texts. */
export function reasonsOf(record, rated, structure) {
  const { game } = record;
  const { drawn } = record.position;
  const free = freeBoxes(game, drawn);
  if (closedBy(game, drawn, rated.edge).length) return [t(rated.exact ? "teach.takes" : "teach.other")];
  const reasons = free ? [t("teach.leaves", { n: free })] : [];
  const beside = boxesBeside(game, rated.edge);
  const opened = structure?.chains.find(
    (chain) => !chain.free && chain.boxes.some((box) => beside.includes(box)),
  );
  const given = boxesGiven(game, drawn, rated.edge);
  if (opened && given > free && opened.length > 2) {
    reasons.push(t(opened.kind === "loop" ? "teach.loop" : "teach.chain", { n: opened.length }));
  } else if (given > free) {
    reasons.push(t("teach.gives", { n: given }));
  }
  if (rated.class === "half-hearted") reasons.push(t("teach.half"));
  if (rated.class === "safe" && !free && rated.exact && structure.safe <= NEAR_THE_END) reasons.push(t("teach.parity", { n: structure.safe }));
  return reasons.length ? reasons : [t("teach.other")];
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
    const { edge, lost, exact, reasons, better } = warning;
    panel.replaceChildren(
      html("h2", {}, t("teach.title")),
      html("p", {}, t(exact ? "teach.loses" : "teach.estimated", { n: Math.round(lost * 10) / 10 })),
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
