/** A game in play: whose turn it is, the engine's moves, undo, redo, hints, watching. */

import { api, isAbort } from "./api.js";
import { edgeWords } from "./board.js";
import { clocksOf } from "./clock.js";
import { busyWords, hasText, LONG_WAIT, t } from "./i18n.js";
import { edgeName, followChain, replay, SMALLEST_SIDE } from "./rules.js";
import { say, tell } from "./notice.js";
import { levelNear, ownRating, rate, ratingOf } from "./rating.js";
import { remember, settings, stored } from "./settings.js";
import { warningAbout } from "./teach.js";

const DRAWING = 260; // ms between the edges of one turn
const SPEEDS = [2400, 1400, 800, 400, 150]; // ms between moves while watching
const HEAVY = 2; // a loss with so many times the own boxes is heavy
const SECOND = 1000; // ms

const PERSON = { kind: "person" };

/** Return the table for a new game, see `createPlay`. */
export function setTable(setup) {
  const { rows, cols, clock } = setup;
  const date = new Date().toLocaleDateString("sv"); // local date, YYYY-MM-DD
  const game = { rows, cols, start: [], moves: [], title: "", date };
  return { game, seats: seatsOf(setup), clocks: clocksOf(clock), rated: setup.adapts };
}

/** Return the date and the id of a new game. */
export function newName() {
  const date = Date.now();
  return { date, id: `${date}-${Math.random()}` };
}

/** Return who plays first and second. */
export function seatsOf({ mode, starts, levels, adapts, ...board }) {
  const engine = (level) => ({ kind: "engine", level });
  if (mode === "people") return [PERSON, PERSON];
  if (mode === "watch") return levels.map(engine);
  const opponent = engine(adapts ? levelNear(ownRating(board)) : levels[0]);
  const personFirst = starts === "random" ? Math.random() < 0.5 : starts === "you";
  return personFirst ? [PERSON, opponent] : [opponent, PERSON];
}

/** Return how a game ended before its last edge, as records name it, or "". */
export function resultOf({ flagged, resigned }) {
  return flagged === undefined ? "" : `${["first", "second"][flagged]} ${resigned ? "resigned" : "timed out"}`;
}

/** Return the fields of a table for such a result; none for another text. */
export function endOf(result) {
  const [, side, how] = /^(first|second) (resigned|timed out)$/.exec(result) ?? [];
  return side ? { flagged: Number(side === "second"), resigned: how === "resigned" } : {};
}

export function levelName(id) {
  return hasText(`level.${id}`) ? t(`level.${id}`) : id;
}

/**
 * Create the play at a table {seats, names, clocks, flagged, rated, date, id, loaded}. `record` holds the game.
 * `flagged` is the side that has run out of time, or that has `resigned`. `rated` tells whether the result changes the rating of the person.
 * `date` is the start of the game, and `id` its key in the archive. `loaded` is the content of a loaded game.
 */
export function createPlay({ record, analysis, notice, isShown, onState, onChain }) {
  const table = { seats: [PERSON, PERSON] };
  // `marked` is an edge that a second touch draws, or that is drawn after the engine's move. `waited` are the seconds that
  // the engine has been thinking or compiling. `warning` is what the teaching mode says about the marked edge.
  const state = { busy: false, failed: false, waited: 0, running: true, hint: "", marked: null, warning: null };
  let controller = new AbortController();
  const prepared = new Set(); // boards with their level that the server has compiled

  const seat = () => table.seats[record.position.player];
  const watching = () => table.seats.every(({ kind }) => kind === "engine");
  const ended = () => replay(record.root).over || table.flagged !== undefined;
  const isOpen = () => !record.position.over && table.flagged === undefined;
  const mayMove = () => isOpen() && seat().kind === "person" && !state.busy;
  /** Return whether the engine is to move but has not been asked, outside watched games. */
  const engineWaits = () => isOpen() && seat().kind === "engine" && !state.busy && !watching();

  const engineSeat = () => (seat().level ? seat() : table.seats.find((each) => each.level));
  const engineName = () => `${record.game.rows}x${record.game.cols} ${engineSeat()?.level}`;
  /** Return whether the server has compiled the engine that is to move, or the opponent of a person. */
  const isReady = () => prepared.has(engineName());

  function change(changes) {
    Object.assign(state, changes);
    onState();
  }

  function sit(newTable) {
    halt();
    const { seats, names = [], loaded = "", clocks = null, flagged, resigned, rated = false } = newTable;
    const { date, id } = newTable.id ? newTable : newName();
    Object.assign(table, { seats, names, loaded, clocks: clocks && structuredClone(clocks), flagged, resigned, rated, date, id });
    state.running = true;
    record.reset(newTable.game, newTable.at);
  }

  /** Cancel the request to the engine, because its answer belongs to an old position. */
  function halt() {
    controller.abort();
    controller = new AbortController();
    notice.settle("move");
    Object.assign(state, { busy: false, failed: false, waited: 0, hint: "", marked: null, warning: null });
  }

  /** Let the engine move if it is its turn and the last ply of the game is shown. */
  function next() {
    const atEnd = record.at === record.game.moves.length;
    if (watching() && state.running && !atEnd) change({ running: false }); // a person looks at an earlier ply
    const waits = watching() && !state.running;
    settleRating();
    if (!isShown() || state.busy || waits || !atEnd || !isOpen()) return;
    if (seat().kind === "engine") engineTurn();
    else prepare();
  }

  /** Compile the engine while a person thinks. An error is reported when the engine has to move. */
  function prepare() {
    const { rows, cols } = record.game;
    const { level } = engineSeat() ?? {};
    const name = engineName();
    if (level !== undefined && !isReady()) api.warm({ rows, cols, level }, controller.signal).then(() => prepared.add(name), () => {});
  }

  /** Let the engine play this turn, also in place of a person, or only the first edges of it. */
  async function engineTurn(most = Infinity) {
    if (!isOpen()) return;
    if (seat().kind === "person") unrate();
    const { marked } = state;
    halt(); // otherwise two answers for one position would both be drawn
    const mine = (controller = new AbortController());
    const { signal } = mine;
    change({ busy: true, marked: seat().kind === "engine" ? marked : null });
    try {
      const edges = await askEngine(signal);
      for (const [index, edge] of edges.slice(0, most).entries()) {
        // No pause follows the last edge, so the other side can move at once.
        if (watching() && state.running) await pause(SPEEDS[settings.speed - 1], signal);
        else if (index) await pause(DRAWING, signal);
        record.play([edge]);
      }
      const wished = state.marked;
      change({ busy: false, marked: null });
      analysis.refresh(); // the teaching mode needs the analysis of the person's position
      if (wished !== null && mayMove()) press(wished);
      next();
    } catch (error) {
      if (mine !== controller || isAbort(error)) return;
      state.failed = notice.fail("move", error, () => engineTurn(most)); // repeated automatically if that can help
      prepared.clear(); // a new server may replace the old one
      change({ busy: false });
    }
  }

  async function askEngine(signal) {
    const game = record.shown();
    const { level } = engineSeat() ?? { level: settings.setup.levels[0] };
    const name = engineName();
    const count = setInterval(() => change({ waited: state.waited + 1 }), SECOND);
    try {
      const { edges } = await api.move(game, { level, seed: Math.floor(Math.random() * 2 ** 31) }, signal);
      signal.throwIfAborted();
      notice.settle("move");
      if (!isReady() && state.waited > LONG_WAIT) remember({ usualWait: state.waited });
      prepared.add(name);
      return edges;
    } finally {
      clearInterval(count);
      state.waited = 0;
    }
  }

  /** Draw an edge for a person. Mark it instead while the engine moves, or if a second touch must confirm it. */
  async function press(edge, mayMiss = false) {
    if (record.position.drawn[edge] || state.checking || !isOpen()) return;
    const waits = state.busy && seat().kind === "engine" && !watching();
    const again = state.marked === edge;
    if (waits || (mayMiss && !again)) return change({ marked: again ? null : edge });
    if (!mayMove()) return;
    const { game } = record;
    if (settings.teaching && state.warning?.edge !== edge && (await isCostly(edge))) return;
    if (record.game !== game || !mayMove() || !isShown()) return; // the game or the view has changed
    Object.assign(state, { hint: "", marked: null, warning: null });
    if (settings.analysis || settings.teaching) unrate(); // the page showed good edges
    if (record.at < record.game.moves.length && record.game.moves[record.at] !== edge) unrate(); // moves are taken back
    const following = followChain(record.game, record.position.drawn, edge);
    record.play([edge, ...following]);
    if (following.length) onChain(following.length + 1);
    if (engineWaits() && record.at < record.game.moves.length) return redo(); // the same move gets the same answer
    next();
  }

  /** Return whether the teaching mode warns about an edge. The edge is marked then; a second press draws it. */
  async function isCostly(edge) {
    const key = record.key();
    change({ checking: true, hint: t("teach.checking"), warning: null });
    const warning = await warningAbout(edge, record, analysis);
    const isNew = record.key() !== key; // the board has changed meanwhile
    change({ checking: false, hint: "", ...(warning && !isNew && { warning, marked: edge }) });
    return isNew || warning !== null;
  }

  /** Show another ply. The engine stops; at the end of the game it continues. */
  function goTo(at) {
    const ply = Math.max(0, Math.min(at, record.game.moves.length));
    if (ply === record.at) return;
    halt();
    if (watching()) state.running = false;
    record.goTo(ply);
    next();
  }

  /** Return whether a person chose the edge of a ply by a separate click. While watching, every ply counts. */
  function isDecision({ player }, ply) {
    return watching() || (table.seats[player].kind === "person" && !record.game.joined?.includes(ply));
  }

  /** Step back to the last decision of a person, if there is one; while watching, by one move. */
  function undo() {
    if (!mayUndo()) return;
    unrate();
    goTo(record.position.plies.findLastIndex(isDecision));
    if (table.clocks && !ended() && !watching()) record.reset(record.cut()); // the clock of the side that now moves runs
  }

  /** Return whether there is a decision to step back to. */
  const mayUndo = () => table.flagged === undefined && record.position.plies.some(isDecision);

  /** Step forward to the next decision of a person; while watching, by one move. */
  function redo() {
    const at = replay(record.game).plies.findIndex((ply, index) => index > record.at && isDecision(ply, index));
    goTo(at < 0 ? record.game.moves.length : at);
  }

  /** Return the side that can resign: the person against an engine, or the person to move; else null. */
  function resigner() {
    if (watching() || ended() || !record.root.moves.length) return null;
    const engine = table.seats.findIndex(({ kind }) => kind === "engine");
    return engine < 0 ? replay(record.root).player : 1 - engine;
  }

  /** End the game for a side that resigns or whose time is up, unless it has ended meanwhile. */
  function flag(player, resigned = false) {
    if (ended()) return;
    halt();
    Object.assign(table, { flagged: player, resigned });
    settleRating();
    record.goTo(record.root.moves.length, [...record.path]);
  }

  /** Update the rating of the person once, after a rated game against a level. */
  function settleRating() {
    const person = table.seats.findIndex(({ kind }) => kind === "person");
    const rating = ratingOf(table.seats[1 - person]?.level);
    if (!table.rated || !ended() || rating === undefined) return;
    unrate();
    const { score } = replay(record.root);
    const won = table.flagged === undefined ? Math.sign(score[person] - score[1 - person]) : table.flagged === person ? -1 : 1;
    rate(record.root, rating, (won + 1) / 2);
    say(t("rating.now", { ...record.root, n: ownRating(record.root) }));
  }

  /**
   * Return what to offer at the end, {words, level, lesson}, or null: a harder level after a win, an easier one after a heavy loss,
   * and after a heavy loss against the lowest level a lesson and a smaller board, if there is one.
   */
  function offerAfter() {
    const person = table.seats.findIndex(({ kind }) => kind === "person");
    const { level } = table.seats[1 - person] ?? {};
    if (level === undefined || settings.setup.adapts) return null; // an adapting level follows the rating
    const { game: { rows, cols }, position: { score } } = record;
    const won = table.flagged === undefined ? score[person] > score[1 - person] : table.flagged !== person;
    const lostHeavily = table.flagged === person || score[1 - person] >= HEAVY * score[person];
    if (!won && !lostHeavily) return null;
    const other = String(Number(level) + (won ? 1 : -1));
    if (hasText(`level.${other}`)) return { words: won ? "end.harder" : "end.easier", level: other };
    const words = Math.max(rows, cols) > SMALLEST_SIDE ? "end.smaller" : null;
    return won ? null : { words, level, lesson: true };
  }

  /** Take the game out of the rating; in the stored table too, because the next move may come after a reload. */
  function unrate() {
    if (!table.rated) return;
    table.rated = false;
    remember({ table: { ...settings.table, rated: false } });
  }

  async function hint() {
    if (!isOpen() || state.busy || state.hinting) return;
    unrate();
    const key = record.key();
    let seconds = 0;
    do {
      change({ hint: analysis.hasFailed() ? t("status.failed") : busyWords("hint.searching", seconds++), hinting: true });
      analysis.refresh();
      await analysis.known(SECOND);
    } while (analysis.bestEdge() === null && analysis.isRunning() && record.key() === key);
    change({ hinting: false });
    analysis.refresh(); // stops a request that served the hint alone
    if (record.key() !== key) return;
    const edge = analysis.bestEdge();
    if (!isShown()) return change({ hint: "" });
    change({ hint: edge === null ? t("hint.none") : analysis.hintWords(edge, edgeName(record.game, edge)) });
    if (edge !== null) analysis.showHint(edge);
    tell(edge === null ? state.hint : analysis.hintWords(edge, edgeWords(record.game, edge)));
  }

  function run(on) {
    halt();
    change({ running: on });
    if (!on || !isShown()) return;
    record.goTo(record.game.moves.length);
    next();
  }

  /** Play the next move of a watched game, or show it if it is already played, and pause. */
  function step() {
    halt();
    change({ running: false });
    if (record.at < record.game.moves.length) record.goTo(record.at + 1);
    else engineTurn(1);
  }

  /** Return the edge that a person has marked and the player who would draw it as {edge, player}; else null. */
  function markedEdge() {
    const player = mayMove() ? record.position.player : table.seats.findIndex(({ kind }) => kind === "person");
    return state.marked === null ? null : { edge: state.marked, player };
  }

  /** Remove the mark of an edge. Returns false if no edge is marked. */
  function unmark() {
    if (state.marked === null) return false;
    change({ marked: null, warning: null });
  }

  return { table, state, sit, halt, next, press, goTo, undo, redo, hint, run, step, markedEdge, unmark, flag, resigner, offerAfter, unrate, ended, isOpen, letMove: () => engineTurn(), mayMove, mayUndo, engineWaits, watching, isReady };
}

/** Wait some ms. Rejects when the signal is aborted. */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
