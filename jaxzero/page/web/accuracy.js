/** How many moves of a game lost nothing, for each side and phase of the game. */

import { html } from "./dom.js";
import { t } from "./i18n.js";
import { hasSafeEdge, replay } from "./rules.js";

const SOMETHING = 0.5; // of the margin; expected losses scatter
const PHASES = ["all", "opening", "middle", "endgame"];

/** Return the percentage of moves without loss as [{all, opening, middle, endgame}] by player; null: no moves. */
export function accuracyOf(game, lines) {
  const counts = [0, 1].map(() => Object.fromEntries(PHASES.map((phase) => [phase, { good: 0, all: 0 }])));
  const position = replay(game, 0);
  for (const [ply, edge] of game.moves.entries()) {
    const line = lines[ply];
    const left = position.drawn.filter((drawn) => !drawn).length;
    if (line && line.lost !== null) {
      const good = line.lost < SOMETHING;
      for (const phase of ["all", phaseOf(game, position.drawn, left)]) {
        counts[line.player][phase].all++;
        counts[line.player][phase].good += good;
      }
    }
    position.drawn[edge] = 1;
  }
  const percent = ({ good, all }) => (all ? Math.round((100 * good) / all) : null);
  return counts.map((phases) => Object.fromEntries(PHASES.map((phase) => [phase, percent(phases[phase])])));
}

/** The opening lasts while two thirds of the edges are left; in the endgame no edge is safe. */
function phaseOf(game, drawn, left) {
  if (3 * left >= 2 * drawn.length) return "opening";
  return hasSafeEdge(game, drawn) ? "middle" : "endgame";
}

export function accuracyTable(accuracy, nameOf) {
  const head = PHASES.map((phase) => html("th", { scope: "col" }, t(`accuracy.${phase}`)));
  const rows = accuracy.map((phases, player) => {
    const cells = PHASES.map((phase) => html("td", {}, phases[phase] === null ? "–" : `${phases[phase]} %`));
    return html("tr", {}, html("th", { scope: "row" }, nameOf(player)), cells);
  });
  return html("table", { class: "accuracy", "data-testid": "accuracy" }, html("caption", {}, t("accuracy.title")), html("thead", {}, html("tr", {}, html("td", {}), head)), html("tbody", {}, rows));
}
