/**
 * The game on the table: its moves, the ply that is shown, and a variation tried in a review.
 *
 * `joined` of a game are the plies that were drawn by the same click as the ply before; `setUp` is
 * true where a person has set up its start.
 */

import { replay } from "./rules.js";

/** Return a text that differs for different games, whatever their titles and dates. */
export function keyOf({ rows, cols, start, moves }) {
  return [rows, cols, start, moves].join("|");
}

export function createRecord(game) {
  const listeners = [];
  let main = null; // the game while a variation is shown: {game, at}

  const record = {
    game,
    at: game.moves.length,
    position: replay(game),

    onChange(listener) {
      listeners.push(listener);
    },

    /** Show another game from one ply on, by default from its last. */
    reset(newGame, at = newGame.moves.length) {
      main = null;
      record.game = newGame;
      show(at, "reset");
    },

    goTo(at) {
      const ply = Math.max(0, Math.min(at, record.game.moves.length));
      if (ply !== record.at) show(ply, "step");
    },

    /** Draw edges at the ply shown. What came after it is forgotten; with `keep` it is a variation. */
    play(edges, keep = false) {
      const { moves } = record.game;
      const same = edges.every((edge, index) => moves[record.at + index] === edge);
      if (!same) {
        if (keep && !main) main = { game: record.game, at: record.at };
        const kept = moves.slice(0, record.at);
        const joined = (record.game.joined ?? []).filter((ply) => ply < record.at);
        for (let more = 1; more < edges.length; more++) joined.push(record.at + more);
        record.game = { ...record.game, moves: [...kept, ...edges], joined };
      }
      show(record.at + edges.length, "play");
    },

    get inVariation() {
      return main !== null;
    },

    /** Leave the variation for the game. */
    leaveVariation() {
      if (!main) return;
      const { at } = main;
      record.game = main.game;
      main = null;
      show(at, "reset");
    },

    /** Return the game to keep for the next visit, without a variation: {game, at}. */
    kept() {
      return main ?? { game: record.game, at: record.at };
    },

    /** Return the game up to the ply shown, as the server wants it. */
    shown() {
      return { ...record.game, moves: record.game.moves.slice(0, record.at) };
    },

    /** Return a text that differs for different positions and histories. */
    key() {
      return keyOf(record.shown());
    },
  };

  function show(at, reason) {
    record.at = at;
    record.position = replay(record.game, at);
    for (const listener of listeners) listener(reason);
  }

  return record;
}
