/** The game on the table: store it for the next visit, set it aside, archive it, take it back, start a new one. */

import { addToArchive, isEnded, isOther, removeFromArchive } from "./archive.js";
import { t } from "./i18n.js";
import { endOf, newName, seatsOf, setTable } from "./play.js";
import { fromFragment, isAnnotated, keyOf } from "./record.js";
import { edgeCount, replay, SMALLEST_SIDE } from "./rules.js";
import { remember, settings } from "./settings.js";

/** Return a text that changes with every change that a person makes to a game. */
function contentOf({ rows, cols, start, moves, comments = {}, variations = [], title = "" }, names = []) {
  return JSON.stringify([rows, cols, start, moves, comments, variations, title, names]);
}

/** `openView(name)` goes to a view by its address; `showView(name)` shows a view and keeps the address. */
export function createTables({ record, play, editor, notice, showView, openView, focusBoard }) {
  const tableNow = () => ({ ...play.table, ...record.kept() });

  /** Remember the game on the table for the next visit; in the archive too, once it has ended. */
  function keep() {
    if (isOther(tableNow())) Object.assign(play.table, newName()); // the archived game stays unchanged
    const table = tableNow();
    remember({ table });
    if (isPlayed(table) && play.ended() && table.game.moves.length) addToArchive(table);
  }

  /** Return whether the game was played or changed here, and not only looked at. */
  function isPlayed(table) {
    return hasEngine() || contentOf(table.game, table.names) !== table.loaded;
  }

  function hasEngine() {
    return play.table.seats.some(({ kind }) => kind === "engine");
  }

  /** Archive an unfinished game before another takes its place, and offer it back. */
  function setAside() {
    const table = tableNow();
    const { game } = table;
    const { plies } = replay(game);
    const byPerson = ({ player }) => table.seats[player].kind === "person";
    const begun = game.setUp || isAnnotated(game) || (play.watching() ? plies.length : plies.some(byPerson));
    if (!isPlayed(table) || play.ended() || !begun) return;
    addToArchive(table);
    notice.offer("aside.text", "aside.back", () => openArchived(table));
  }

  /** Replace the table and show the new one. */
  function open(table, view) {
    editor.close();
    notice.moveOn(true);
    setAside();
    play.sit(table);
    openView(view);
  }

  function start(setup) {
    open(setTable(setup), "play");
    focusBoard();
  }

  function startAgain() {
    const { rows, cols } = record.game;
    const table = setTable({ ...settings.setup, rows, cols });
    open({ ...table, seats: table.rated && hasEngine() ? table.seats : play.table.seats }, "play");
    focusBoard();
  }

  /** Start a game like the last one against the level, or on the smaller board, that its result suggests. */
  function startOtherLevel() {
    const { words, level } = play.offerAfter();
    const side = (count) => (words === "end.smaller" ? Math.max(SMALLEST_SIDE, count - 1) : count);
    const [rows, cols] = [record.game.rows, record.game.cols].map(side);
    const levels = [level, settings.setup.levels[1]];
    remember({ setup: { ...settings.setup, rows, cols, levels, mode: "engine", adapts: false } });
    start(settings.setup);
  }

  /** Let other players play on from the position shown. A game that would lose moves is set aside first. */
  function startHere(setup) {
    const seats = { seats: seatsOf(setup), names: [], rated: false };
    const isWhole = !record.inVariation && record.at === record.root.moves.length;
    if (!play.ended() && isWhole) {
      play.sit({ ...play.table, ...seats, game: record.root });
      return openView("play");
    }
    open({ ...seats, game: record.shown() }, "play");
  }

  /** Show a game of the archive in the review, or go on with an unfinished one, which leaves the archive. */
  function openArchived(table) {
    if (isEnded(table)) return open({ ...table, rated: false }, "review");
    removeFromArchive(table.id);
    open(table, "play");
  }

  /** Delete a game of the archive, by default all. If it is on the table, a new game begins. */
  function remove(id = null) {
    removeFromArchive(id);
    if (id !== null && id !== play.table.id) return;
    play.sit(setTable(settings.setup));
    play.next();
  }

  /** Show a game that was loaded or shared, for two people, in the review. */
  function showLoaded(game, { names, ...facts }) {
    const seats = [{ kind: "person" }, { kind: "person" }];
    open({ game, names, seats, ...facts, loaded: contentOf(game, names) }, "review");
  }

  /** Show the game in a fragment, or a notice if it holds none. */
  function showShared(fragment) {
    const shared = fromFragment(fragment);
    if (!shared) {
      showView("play");
      return notice.tell(() => t("error.share"));
    }
    showView("review");
    const { game, at, names, result } = shared;
    if (isOnTable(game)) return record.goTo(at, []); // later moves of the own game stay
    const address = location.hash;
    showLoaded(game, { names, at, ...endOf(result) });
    history.replaceState(null, "", address); // keep the address that can be shared
  }

  /** Return whether the game on the table equals or continues a shared game, e.g. when a person opens their own link. */
  function isOnTable(shared) {
    const { game } = tableNow();
    const begun = { ...game, moves: game.moves.slice(0, shared.moves.length) };
    return keyOf(begun) === keyOf(shared) && (shared.moves.length > 0 || !game.moves.length); // every game continues an empty board
  }

  /** Restore the game of the last visit, or set up a new game. */
  function restore() {
    play.sit(settings.table ?? setTable(settings.setup));
  }

  return { keep, hasEngine, setAside, openArchived, remove, start, startAgain, startOtherLevel, startHere, showLoaded, showShared, restore };
}

/** Create the editor of positions: a click draws an edge or removes it. */
export function createEditor({ record, onChange }) {
  let on = false;

  function open() {
    const { drawn } = record.position;
    const start = [...Array(edgeCount(record.game)).keys()].filter((edge) => drawn[edge]);
    on = true;
    record.reset({ ...record.root, start, moves: [], joined: [], comments: {}, variations: [] });
  }

  function close() {
    if (!on) return;
    on = false;
    onChange();
  }

  function toggle(edge) {
    const { start } = record.game;
    const changed = start.includes(edge) ? start.filter((each) => each !== edge) : [...start, edge];
    record.reset({ ...record.root, start: changed.sort((a, b) => a - b), setUp: true });
  }

  return { isOn: () => on, open, close, toggle };
}
