/** Pictures of positions: files, and the small pictures of the start page. */

import { sideSign, svg } from "./dom.js";
import { centreOf, coordinatesOf, dotsOf, edgeLine, frameOf } from "./geometry.js";
import { edgeCount, NOBODY, replay } from "./rules.js";

const INK = "#33404f";
const SIDES = ["#1d6fc4", "#b8570a"];
const TINTS = ["#d5e7fa", "#fce5c6", "#e6e3da"]; // boxes of the first player, of the second, of nobody
const SHARPNESS = 2; // pixels of the PNG per unit of the picture

/** The picture formats by id; `make` returns the content of the file from a record. */
export const PICTURES = {
  picture: { ending: "svg", type: "image/svg+xml", make: ({ game, position }) => textOf(draw(game, position)) },
  png: { ending: "png", type: "image/png", make: ({ game, position }) => toPng(draw(game, position)) },
};

function textOf(picture) {
  return new XMLSerializer().serializeToString(picture);
}

async function toPng(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(textOf(picture))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SHARPNESS * picture.getAttribute("width");
  canvas.height = SHARPNESS * picture.getAttribute("height");
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Draw a position. Its last edge has the colour of the player. */
function draw(game, { drawn, owner, plies }) {
  const { viewBox, width, height } = frameOf(game);
  const [x, y] = viewBox.split(" ");
  const last = plies.at(-1);
  const edges = [...Array(edgeCount(game)).keys()];
  const boxes = [...owner.keys()].filter((box) => owner[box] >= 0);
  const ink = edges.filter((edge) => drawn[edge]).map((edge) => {
    const look = edge === last?.edge ? { class: `fresh side-${last.player}`, stroke: SIDES[last.player] } : { class: "ink", stroke: INK };
    return edgeLine(game, edge, { ...look, "stroke-width": 11 });
  });
  return svg(
    "svg",
    { viewBox, width, height, "stroke-linecap": "round" },
    svg("rect", { x, y, width, height, fill: "#ffffff", class: "paper" }),
    boxes.map((box) => boxOf(game, box, owner[box])),
    edges.map((edge) => edgeLine(game, edge, { stroke: "#dcd8ce", "stroke-width": 3, "stroke-dasharray": "1 9" })),
    ink,
    svg("g", { fill: INK, class: "dots" }, dotsOf(game)),
    svg("g", { class: "coordinates", fill: "#5a6471", "font-family": "sans-serif", "text-anchor": "middle" }, coordinatesOf(game)),
  );
}

function boxOf(game, box, owner) {
  const [x, y] = centreOf(game, box);
  const tint = svg("rect", { x: x - 41, y: y - 41, width: 82, height: 82, rx: 10, fill: TINTS[owner], class: `tint side-${owner}` });
  if (owner === NOBODY) return svg("g", {}, tint);
  const sign = sideSign(owner, 34, [x, y]);
  sign.setAttribute("fill", SIDES[owner]);
  return svg("g", {}, tint, sign);
}

/** The rules in four games: draw, close, move again, count. */
export const RULES = [
  { start: [0, 9], moves: [2] },
  { start: [0, 6, 2, 9], moves: [7] },
  { start: [0, 6, 2, 9], moves: [7, 5] },
  { start: [0, 1, 2, 3, 5, 7, 10], moves: [6, 8, 11, 4, 9] },
].map((game) => ({ rows: 2, cols: 2, ...game }));

/** The game beside the heading of the start page. */
export const HERO = { rows: 3, cols: 3, start: [0, 1, 2, 3, 4, 9, 12, 14, 15, 16, 17, 20, 23], moves: [13, 22, 6] };

/** Draw the end of a game in the colours of the page. */
export function miniature(game) {
  const picture = draw(game, replay(game));
  picture.setAttribute("class", "miniature");
  picture.setAttribute("aria-hidden", "true");
  return picture;
}
