/** Teaching mode: a warning before a move that loses 2 or more boxes of margin, with the reasons. */

import { edgeWords } from "./board.js";
import { fill } from "./dialogs.js";
import { find, html } from "./dom.js";
import { t } from "./i18n.js";
import { boxesBeside, boxesGiven, closedBy, freeBoxes } from "./rules.js";

const WORTH_A_WARNING = 2; // boxes of margin
const PATIENCE = 5000; // ms to wait for the analysis before the move is played without a warning

/** Warn before a costly move. Resolves with true if the move is to be played. */
export async function confirmMove(edge, record, analysis) {
  const key = record.key();
  const found = await analysis.known(PATIENCE);
  const rated = found?.edges?.find((each) => each.edge === edge);
  if (record.key() !== key) return false; // the board has changed meanwhile
  if (!rated || rated.lost === null || rated.lost < WORTH_A_WARNING) return true;
  const better = analysis.bestEdge();
  return openWarning(record.game, rated, reasonsOf(record, rated, found.structure), better);
}

/** Return the reasons why a move is bad, as texts. */
export function reasonsOf(record, rated, structure) {
  const { game } = record;
  const { drawn } = record.position;
  const free = freeBoxes(game, drawn);
  if (closedBy(game, drawn, rated.edge).length) return [t("teach.takes")];
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
  if (rated.class === "safe" && !free) reasons.push(t("teach.parity", { n: structure?.safe ?? 0 }));
  return reasons.length ? reasons : [t("teach.other")];
}

function openWarning(game, rated, reasons, better) {
  const dialog = find("#teach-dialog");
  const close = (answer) => () => dialog.close(answer);
  dialog.returnValue = "back";
  fill(
    dialog,
    "teach",
    html(
      "div",
      { class: "dialog-body" },
      html("strong", {}, t("teach.loses", { n: Math.round(rated.lost * 10) / 10 })),
      reasons.map((reason) => html("p", {}, reason)),
      better === null || better === rated.edge ? null : html("p", { class: "muted" }, t("teach.better", { edge: edgeWords(game, better) })),
      html(
        "div",
        { class: "dialog-foot" },
        html("button", { onclick: close("play"), "data-testid": "teach-anyway" }, t("teach.anyway")),
        html("button", { class: "primary", autofocus: true, onclick: close("back"), "data-testid": "teach-back" }, t("teach.back")),
      ),
    ),
  );
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "play"), { once: true });
  });
}
