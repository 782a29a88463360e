/** The expected end of a game from the view of the first player: words and a chart of margins. */

import { svg } from "./dom.js";
import { t } from "./i18n.js";

export function formatNumber(value) {
  return String(Math.round(value * 10) / 10);
}

/** Say how many boxes of the margin a move loses, and whether that is proven. */
export function lostWords({ lost, exact }) {
  return t("lost", { n: formatNumber(lost), exact });
}

/** Describe a final margin in words; the margin is positive if the first player is ahead. */
export function marginWords(margin, nameOf) {
  const n = formatNumber(Math.abs(margin));
  if (n === "0") return t("margin.even");
  const name = nameOf(margin > 0 ? 0 : 1);
  return name === t("name.you") ? t("margin.you", { n }) : t("margin.wins", { name, n });
}

/**
 * Convert a line of the analysis, in the view of the side to move, into an outcome for the first player.
 *
 * Returns
 * {words, bounds, final: [[margin, probability]]} or null.
 */
export function outcomeOf(line, position, nameOf) {
  if (line.value === null || line.value === undefined) return null;
  const sign = position.player === 0 ? 1 : -1;
  const lead = position.score[0] - position.score[1];
  const proven = line.exact?.value;
  const margin = lead + sign * (proven ?? line.value);
  const final =
    proven === undefined
      ? (line.final ?? []).map(([value, p]) => [sign * value, p]).sort((a, b) => a[0] - b[0])
      : [[margin, 1]];
  return {
    words: t(proven === undefined ? "analysis.expected" : "analysis.exact", { words: marginWords(margin, nameOf) }),
    bounds: boundsWords(line.exact, position, lead, nameOf),
    final,
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

export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/** Draw the probabilities of final margins as bars: the first player's wins to the left. */
export function distributionChart(final, nameOf) {
  const likely = final.filter(([, p]) => p >= 0.002);
  const margins = likely.map(([margin]) => margin);
  const reach = Math.max(3, ...margins.map(Math.abs));
  const [width, height, floor] = [348, 96, 78];
  const top = Math.max(...likely.map(([, p]) => p));
  const x = (margin) => width / 2 - (margin / reach) * (width / 2 - 16);
  const bar = Math.min(22, Math.max(3, (width - 40) / (2 * reach + 1) - 2));
  const bars = likely.map(([margin, p]) => {
    const tall = Math.max(1.5, (p / top) * (floor - 22));
    const side = margin > 0 ? "side-0" : margin < 0 ? "side-1" : "even";
    const title = svg("title", {}, `${marginWords(margin, nameOf)}: ${percent(p)}`);
    return svg("rect", { x: x(margin) - bar / 2, y: floor - tall, width: bar, height: tall, rx: 2, class: side }, title);
  });
  const share = (test) => percent(final.filter(([margin]) => test(margin)).reduce((sum, [, p]) => sum + p, 0));
  const label = (margin, words) => svg("text", { x: x(margin), y: height - 4 }, words);
  return svg(
    "svg",
    { class: "distribution", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": t("analysis.distribution") },
    svg("line", { class: "axis", x1: 0, x2: width, y1: floor + 0.5, y2: floor + 0.5 }),
    bars,
    label(reach, `+${formatNumber(reach)}`),
    label(0, "0"),
    label(-reach, `+${formatNumber(reach)}`),
    svg("text", { x: 18, y: 12 }, share((margin) => margin > 0)),
    svg("text", { x: width - 18, y: 12 }, share((margin) => margin < 0)),
  );
}
