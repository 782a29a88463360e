/** The expected end of a game in words. */

import { t } from "./i18n.js";

export function formatNumber(value) {
  return String(Math.round(value * 10) / 10);
}

/** Say how many boxes of the margin a move loses: exactly, at least (a proven bound), or about (an estimate). */
export function lostWords({ lost, exact, bound }) {
  return t("lost", { n: formatNumber(lost), exact, bound });
}

const NEARLY_EVEN = 0.5; // boxes; a smaller expected margin names no winner

/** Describe a final margin in words; the margin is positive if the first player is ahead. */
export function marginWords(margin, nameOf) {
  const n = formatNumber(Math.abs(margin));
  if (Math.abs(margin) < NEARLY_EVEN) return t(margin === 0 ? "margin.even" : "margin.nearly");
  const name = nameOf(margin > 0 ? 0 : 1);
  return name === t("name.you") ? t("margin.you", { n }) : t("margin.wins", { name, n });
}

/**
 * Describe a line of the analysis, which is in the view of the side to move.
 *
 * Returns the texts {words, bounds, chances} or null. `bounds` and `chances` can be null.
 */
export function outcomeOf(line, position, nameOf) {
  if (line.value === null || line.value === undefined) return null;
  const sign = position.player === 0 ? 1 : -1;
  const lead = position.score[0] - position.score[1];
  const proven = line.exact?.value;
  const margin = lead + sign * (proven ?? line.value);
  return {
    words: t(proven === undefined ? "analysis.expected" : "analysis.exact", { words: marginWords(margin, nameOf) }),
    bounds: boundsWords(line.exact, position, lead, nameOf),
    chances: proven === undefined ? chancesWords(line, position, nameOf) : null,
  };
}

/** Describe the proven bounds in words; null if there are none or they exclude no result of the open boxes. */
function boundsWords(exact, position, lead, nameOf) {
  if (exact?.lower === undefined) return null;
  const left = position.owner.filter((owner) => owner < 0).length;
  if (exact.lower <= -left && exact.upper >= left) return null;
  const sign = position.player === 0 ? 1 : -1;
  const ends = [exact.lower, exact.upper].map((value) => lead + sign * value).sort((a, b) => a - b);
  return t("analysis.bounds", { lower: marginWords(ends[0], nameOf), upper: marginWords(ends[1], nameOf) });
}

function chancesWords({ win, draw, lose }, { player }, nameOf) {
  const [first, second] = player === 0 ? [win, lose] : [lose, win];
  return t("analysis.chances", { first: nameOf(0), win: percent(first), draw: percent(draw), second: nameOf(1), lose: percent(second) });
}

export function percent(share) {
  return t("percent", { n: Math.round(100 * share) });
}
