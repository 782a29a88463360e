/**
 * The game on the table as a tree of moves, and the position shown.
 *
 * A line is {moves, joined, comments, variations}. A variation is a line that also has `at`, the number of moves
 * before it. The game itself is the main line, which also has {rows, cols, start, title, date, setUp}. `joined` are
 * the plies that were drawn by the same click as the ply before. `comments` are texts by the number of moves before
 * them. `setUp` is true if a person has set up the start. A path is the list of variations from the game to a line.
 */

import { isPossible, replay } from "./rules.js";

export const MAX_NAME = 100; // letters, as in the fields of the names

/** Return a text that identifies a game by its size, start and moves. */
export function keyOf({ rows, cols, start, moves }) {
  return [rows, cols, start, moves].join("|");
}

/** Return the game along a path as one line without variations and comments. */
export function gameAlong(root, path) {
  const { variations, comments, ...game } = root;
  let { moves, joined = [] } = root;
  for (const line of path) {
    moves = [...moves.slice(0, line.at), ...line.moves];
    joined = [...joined.filter((ply) => ply < line.at), ...(line.joined ?? [])];
  }
  return { ...game, moves, joined };
}

export function createRecord(game) {
  const listeners = [];

  const record = {
    root: game, // the game with all its variations
    path: [], // to the line shown
    game: gameAlong(game, []), // the line shown
    at: game.moves.length,
    position: replay(game),

    onChange(listener) {
      listeners.push(listener);
    },

    /** Show another game from one ply on, by default from its last. */
    reset(newGame, at = newGame.moves.length) {
      record.root = newGame;
      choose([]);
      show(at, "reset");
    },

    /** Show another ply of the line shown, or of the line that a path leads to. */
    goTo(at, path = record.path) {
      const other = path !== record.path;
      if (other) choose(path);
      const ply = Math.max(0, Math.min(at, record.game.moves.length));
      if (other || ply !== record.at) show(ply, "step");
    },

    /**
     * Draw edges at the ply shown. If the line continues with other moves, the edges replace these moves; with
     * `keep`, the edges become a variation.
     */
    play(edges, keep = false) {
      const { at } = record;
      if (!follows(record.game.moves.slice(at), edges)) {
        const depth = depthAt(at);
        const before = record.path.slice(0, depth);
        const line = lineOf(depth);
        const known = keep && line.variations?.find((other) => other.at === at && follows(other.moves, edges));
        if (keep && follows(line.moves.slice(at - (line.at ?? 0)), edges)) choose(before);
        else if (known) choose([...before, known]);
        else if (keep && !isEndOfVariation(at)) branch(depth, at, edges);
        else extend(at, edges);
      }
      show(at + edges.length, "play");
    },

    get inVariation() {
      return record.path.length > 0;
    },

    /** Return from all variations to the game. */
    leaveVariation() {
      if (record.path.length) record.goTo(record.path[0].at, []);
    },

    /** Remove the variation shown from the game. */
    remove() {
      const line = record.path.at(-1);
      const parent = record.path.slice(0, -1);
      const lines = lineOf(parent.length).variations;
      lines.splice(lines.indexOf(line), 1);
      record.goTo(line.at, parent);
    },

    get comment() {
      return lineOf(depthAt(record.at)).comments?.[record.at] ?? "";
    },

    setComment(text) {
      const line = lineOf(depthAt(record.at));
      const { [record.at]: _old, ...others } = line.comments ?? {};
      line.comments = text ? { ...others, [record.at]: text } : others;
    },

    /** Return the game to store for the next visit and the ply to show, {game, at}. */
    kept() {
      return { game: record.root, at: record.path.length ? record.path[0].at : record.at };
    },

    /** Return the game up to the ply shown, with its comments and variations so far. */
    cut() {
      return upTo(record.root, record.at);
    },

    /** Return the line shown up to the ply shown, in the form that the server takes. */
    shown() {
      return { ...record.game, moves: record.game.moves.slice(0, record.at) };
    },

    /** Return a text that differs for different positions and histories. */
    key() {
      return keyOf(record.shown());
    },
  };

  const lineOf = (depth) => (depth ? record.path[depth - 1] : record.root);

  /** Return the depth in the path of the line that contains the move before a ply. */
  function depthAt(at) {
    return record.path.filter((line) => line.at < at).length;
  }

  const isEndOfVariation = (at) => record.path.length > 0 && at === record.game.moves.length;

  function branch(depth, at, edges) {
    const line = { at, moves: edges, joined: joinedBy(at, edges), comments: {}, variations: [] };
    (lineOf(depth).variations ??= []).push(line);
    choose([...record.path.slice(0, depth), line]);
  }

  /** Replace the moves of the line shown from a ply on. */
  function extend(at, edges) {
    const { path } = record;
    const old = lineOf(path.length);
    const line = upTo(old, at);
    line.moves.push(...edges);
    line.joined.push(...joinedBy(at, edges));
    if (!path.length) record.root = line;
    else Object.assign(old, line);
    choose([...path]);
  }

  function choose(path) {
    record.path = path;
    record.game = gameAlong(record.root, path);
  }

  function show(at, reason) {
    record.at = at;
    record.position = replay(record.game, at);
    for (const listener of listeners) listener(reason);
  }

  return record;
}

/** Return whether a game has comments or variations. */
export const isAnnotated = ({ comments = {}, variations = [] }) => variations.length > 0 || Object.keys(comments).length > 0;

/** Return a line up to a ply. */
function upTo(line, at) {
  return {
    ...line,
    moves: line.moves.slice(0, at - (line.at ?? 0)),
    joined: (line.joined ?? []).filter((ply) => ply < at),
    comments: textsUpTo(line.comments, at),
    variations: (line.variations ?? []).filter((each) => each.at <= at),
  };
}

const follows = (moves, edges) => edges.every((edge, index) => moves[index] === edge);
const joinedBy = (at, edges) => edges.slice(1).map((_, index) => at + index + 1);
const textsUpTo = (comments = {}, at) => Object.fromEntries(Object.entries(comments).filter(([ply]) => Number(ply) <= at));

function toText(edges) {
  const letters = btoa(String.fromCharCode(...edges));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromText(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return [...letters].map((letter) => letter.charCodeAt(0));
}

/**
 * Return a game and the ply to show as the fragment of an address: g=5x5.START.MOVES.PLY. START and MOVES hold one byte for
 * each edge, in base64 for addresses. A 5x5 game takes 90 letters. Without PLY the end is shown. &name=Ann&name=Ben and
 * &result=first+resigned follow where they are known.
 */
export function toFragment(game, at, names = [], result = "") {
  const more = [...(names.some(Boolean) ? names : []).map((name) => ["name", name]), ...(result ? [["result", result]] : [])];
  const text = `g=${game.rows}x${game.cols}.${toText(game.start)}.${toText(game.moves)}${at < game.moves.length ? `.${at}` : ""}`;
  return more.length ? `${text}&${new URLSearchParams(more)}` : text;
}

/** Return what a fragment holds, {game, at, names, result}, or null without a possible game. */
export function fromFragment(fragment) {
  const fields = new URLSearchParams(fragment);
  const [size, start = "", moves = "", at] = fields.get("g").split(".");
  const names = fields.getAll("name").slice(0, 2).map((name) => name.slice(0, MAX_NAME));
  const [rows, cols] = size.split("x").map(Number);
  try {
    const game = { rows, cols, start: fromText(start), moves: fromText(moves) };
    const ply = /^\d+$/.test(at) ? Math.min(at, game.moves.length) : game.moves.length;
    return isPossible(game) ? { game, at: ply, names, result: fields.get("result") } : null;
  } catch {
    return null; // the text is damaged
  }
}
