/** The check of stored and imported data: a kind is a function that tells whether a value can be used. */

import { gameAlong, MAX_NAME } from "./record.js";
import { isPossible } from "./rules.js";

const MAX_COMMENT = 1000; // letters, as in the field of the comment
const LAST_DATE = 8e15; // ms

export const isFlag = (value) => typeof value === "boolean";
export const oneOf = (...values) => (value) => values.includes(value);
export const within = (min, max) => (value) => Number.isInteger(value) && value >= min && value <= max;
export const isText = (longest) => (value) => typeof value === "string" && value.length <= longest;
export const listOf = (kind, count) => (value) => Array.isArray(value) && value.length === (count ?? value.length) && value.every(kind);
export const having = (kinds) => (value) => value instanceof Object && Object.entries(kinds).every(([name, kind]) => kind(value[name]));
export const orNull = (kind) => (value) => value === null || kind(value);
export const mapOf = (kind) => (value) => value instanceof Object && Object.values(value).every(kind);
export const isLevel = (value) => /^[0-8]$/.test(value) && typeof value === "string";
const maybe = (kind) => (value) => value === undefined || kind(value);

const isAmount = (value) => Number.isFinite(value) && value >= 0;
const isSide = oneOf(0, 1);
const isPly = within(0, 1000);
const isSeat = (seat) => having({ kind: oneOf("person") })(seat) || having({ kind: oneOf("engine"), level: isLevel })(seat);
const isComments = (value) => value instanceof Object && Object.entries(value).every(([ply, text]) => /^\d+$/.test(ply) && isText(MAX_COMMENT)(text));
const LINE = { joined: maybe(listOf(isPly)), comments: maybe(isComments), variations: maybe(listOf(isVariation)) };
const SLIP = { ply: isPly, edge: isPly, player: isSide, best: isPly, lost: isAmount, exact: maybe(isFlag) };

function isVariation(line) {
  return having({ at: isPly, ...LINE })(line);
}

/** Return whether all lines of a game have possible moves. */
function isTree(root, path = []) {
  const { variations = [] } = path.at(-1) ?? root;
  return isPossible(gameAlong(root, path)) && variations.every((line) => isTree(root, [...path, line]));
}

const isTable = having({
  id: (id) => id && isText(MAX_NAME)(id),
  date: within(0, LAST_DATE),
  game: having({ ...LINE, title: maybe(isText(MAX_NAME)) }),
  at: maybe(isPly),
  seats: listOf(isSeat, 2),
  names: maybe((names) => listOf(isText(MAX_NAME), names.length && 2)(names)),
  clocks: maybe(orNull(having({ left: listOf(isAmount, 2), increment: isAmount }))),
  flagged: maybe(isSide),
  resigned: maybe(isFlag),
  rated: maybe(isFlag),
  accuracy: maybe(listOf(having({ all: orNull(isAmount) }), 2)),
  slips: maybe(listOf(having(SLIP))),
});

/** Return whether a table, see play.js, can be shown. */
export function isShowable(table) {
  try {
    return isTable(table) && isTree(table.game);
  } catch {
    return false; // variations too deep within each other
  }
}
