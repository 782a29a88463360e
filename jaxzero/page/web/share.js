/**
 * A game as the fragment of an address: g=5x5.START.MOVES.
 *
 * START and MOVES hold one byte for each edge, in base64 for addresses. A 5x5 game takes 90 letters.
 */

import { findFault } from "./rules.js";

function toText(edges) {
  const letters = btoa(String.fromCharCode(...edges));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromText(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return [...letters].map((letter) => letter.charCodeAt(0));
}

export function toFragment(game) {
  return `g=${game.rows}x${game.cols}.${toText(game.start)}.${toText(game.moves)}`;
}

/** Return {game} of a fragment, or {fault} if it holds no possible game. */
export function fromFragment(fragment) {
  const [size, start = "", moves = ""] = fragment.replace(/^#?g=/, "").split(".");
  const sides = /^(\d)x(\d)$/.exec(size);
  if (!sides) return { fault: { code: "form" } };
  let game;
  try {
    game = { rows: +sides[1], cols: +sides[2], start: fromText(start), moves: fromText(moves) };
  } catch {
    return { fault: { code: "form" } };
  }
  const fault = findFault(game);
  return fault ? { fault } : { game };
}
