/** The course of a game: expected final margin for the first player after each move. */

import { html, svg } from "./dom.js";
import { t } from "./i18n.js";
import { costClass } from "./overlay.js";
import { lostWords, marginWords } from "./outcome.js";

const HEIGHT = 170;
const PAD = { left: 30, right: 10, top: 12, bottom: 22 };

/** Draw the graph in the full width of an element. `lines` are the lines of a review by ply. */
export function drawGraph(parent, { lines, plies, at, mistakes, nameOf, waiting, onJump }) {
  const known = lines.filter(Boolean);
  if (!known.length) {
    parent.replaceChildren(html("p", { class: "empty muted" }, plies ? waiting : t("review.empty")));
    return;
  }
  const width = Math.max(200, parent.clientWidth);
  const reach = Math.max(3, ...known.map(({ margin }) => Math.ceil(Math.abs(margin))));
  const scale = {
    x: (ply) => PAD.left + (ply / Math.max(1, plies)) * (width - PAD.left - PAD.right),
    y: (margin) => PAD.top + ((reach - margin) / (2 * reach)) * (HEIGHT - PAD.top - PAD.bottom),
  };
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": t("review.graph") },
    areas(known, scale),
    axes(width, reach, plies, scale),
    svg("polyline", { class: "curve", points: known.map(({ ply, margin }) => `${scale.x(ply)},${scale.y(margin)}`).join(" ") }),
    svg("line", { class: "now", x1: scale.x(at), x2: scale.x(at), y1: PAD.top - 6, y2: HEIGHT - PAD.bottom + 6 }),
    mistakes.map((line) => slip(line, lines, scale, nameOf)),
  );
  picture.addEventListener("click", (event) => {
    const share = (event.clientX - picture.getBoundingClientRect().left - PAD.left) / (width - PAD.left - PAD.right);
    const mark = event.target.closest("[data-ply]");
    onJump(mark ? Number(mark.dataset.ply) : Math.round(share * plies));
  });
  parent.replaceChildren(picture);
}

/** Fill between the curve and zero, where the curve crosses zero too. */
function areas(known, { x, y }) {
  const crossings = known.slice(1).flatMap(({ ply, margin }, index) => {
    const before = known[index];
    const share = before.margin / (before.margin - margin);
    return before.margin * margin < 0 ? [{ ply: before.ply + share * (ply - before.ply), margin: 0 }] : [];
  });
  const all = [...known, ...crossings].sort((one, other) => one.ply - other.ply);
  const area = (keep, name) => {
    const top = all.map(({ ply, margin }) => `${x(ply)},${y(keep(margin))}`);
    const ends = [`${x(known.at(-1).ply)},${y(0)}`, `${x(known[0].ply)},${y(0)}`];
    return svg("polygon", { class: name, points: [...top, ...ends].join(" ") });
  };
  return [area((margin) => Math.max(0, margin), "area-0"), area((margin) => Math.min(0, margin), "area-1")];
}

function axes(width, reach, plies, { x, y }) {
  const label = (at, words) => svg("text", { x: 14, y: at + 4 }, words);
  return [
    svg("line", { class: "axis", x1: PAD.left, x2: width - PAD.right, y1: y(0), y2: y(0) }),
    label(y(reach), `+${reach}`),
    label(y(0), "0"),
    label(y(-reach), `−${reach}`),
    [...Array(5).keys()].map((part) => Math.round((part * plies) / 4))
      .map((ply) => svg("text", { x: Math.min(x(ply), width - 12), y: HEIGHT - 4 }, String(ply))),
  ].flat();
}

/** Mark a mistake at the margin after the move. The area of the mark grows with the margin lost. */
function slip(line, lines, { x, y }, nameOf) {
  const margin = (lines[line.ply + 1] ?? line).margin;
  return svg(
    "circle",
    {
      class: `slip ${costClass(line.lost)}`,
      cx: x(line.ply + 1),
      cy: y(margin),
      r: Math.min(12, 3.5 + 2.4 * Math.sqrt(line.lost)),
      "data-ply": line.ply + 1,
    },
    svg("title", {}, `${line.ply + 1}: ${lostWords(line)} (${marginWords(margin, nameOf)})`),
  );
}
