/** The accuracy of a game: the percentage of moves that lost nothing, by side and phase. */

import { html } from "./dom.js";
import { t } from "./i18n.js";

const SOMETHING = 0.5; // boxes of margin; smaller expected losses are noise
const PHASES = ["all", "opening", "middle", "endgame"];

/** Return the percentage of moves without loss as [{all, opening, middle, endgame}] by player; null where there are no moves. */
export function accuracyOf(lines) {
  const counts = [0, 1].map(() => Object.fromEntries(PHASES.map((phase) => [phase, { good: 0, all: 0 }])));
  for (const line of lines.filter((each) => each?.lost != null)) {
    for (const phase of ["all", line.phase]) {
      counts[line.player][phase].all++;
      counts[line.player][phase].good += line.lost < SOMETHING;
    }
  }
  const percent = ({ good, all }) => (all ? Math.round((100 * good) / all) : null);
  return counts.map((phases) => Object.fromEntries(PHASES.map((phase) => [phase, percent(phases[phase])])));
}

export function accuracyTable(accuracy, nameOf) {
  const head = PHASES.map((phase) => html("th", { scope: "col" }, t(`accuracy.${phase}`)));
  const rows = accuracy.map((phases, player) => {
    const cells = PHASES.map((phase) => html("td", {}, phases[phase] === null ? "–" : `${phases[phase]} %`));
    return html("tr", {}, html("th", { scope: "row", dir: "auto" }, nameOf(player)), cells);
  });
  return html("table", { class: "accuracy", "data-testid": "accuracy" }, html("caption", {}, t("accuracy.title"), html("small", {}, t("accuracy.note"))), html("thead", {}, html("tr", {}, html("td", {}), head)), html("tbody", {}, rows));
}
