/** A game in play: whose turn it is, the engine's moves, undo, redo, hints, watching. */

import { api, isAbort } from "./api.js";
import { edgeWords } from "./board.js";
import { hasText, t } from "./i18n.js";
import { followChain, replay, startEdges } from "./rules.js";
import { remember, settings } from "./settings.js";
import { confirmMove } from "./teach.js";

const DRAWING = 260; // ms between the edges of one turn
const SPEEDS = [2400, 1400, 800, 400, 150]; // ms between moves while watching
const HINT_PATIENCE = 8000; // ms

const PERSON = { kind: "person" };

/** Return the table for a new game: the game, the seats, the komi. */
export function setTable(setup) {
  const { rows, cols, mode, starts, levels, variant, komi } = setup;
  const engine = (level) => ({ kind: "engine", level });
  const date = new Date().toLocaleDateString("sv"); // year-month-day, as the calendar here says
  const game = { rows, cols, start: startEdges({ rows, cols }, variant), moves: [], title: "", date };
  if (mode === "people") return { game, komi, seats: [PERSON, PERSON] };
  if (mode === "watch") return { game, komi, seats: levels.map(engine) };
  const personFirst = starts === "random" ? Math.random() < 0.5 : starts === "you";
  const seats = personFirst ? [PERSON, engine(levels[0])] : [engine(levels[0]), PERSON];
  return { game, komi, seats };
}

export function levelName(id) {
  return hasText(`level.${id}`) ? t(`level.${id}`) : id;
}

/** Return the final score with komi, or the score so far. */
export function scoreWithKomi(position, komi) {
  return [position.score[0], position.score[1] + komi];
}

export function createPlay({ record, analysis, notice, say, warm, isShown, onState, onChain }) {
  const table = { seats: [PERSON, PERSON], komi: 0, names: [], loaded: "" }; // the game as it was loaded
  const state = { busy: false, warming: false, failed: false, standIn: false, running: true, hint: "" };
  let controller = new AbortController();

  const seat = () => table.seats[record.position.player];
  const watching = () => table.seats.every(({ kind }) => kind === "engine");
  const mayMove = () => !record.position.over && seat().kind === "person" && !state.busy;
  /** Return whether the engine is to move and nothing makes it do so. */
  const engineWaits = () => !record.position.over && seat().kind === "engine" && !state.busy && !watching();

  function change(changes) {
    Object.assign(state, changes);
    onState();
  }

  function sit(newTable) {
    halt();
    const { seats, komi, names = [], loaded = "" } = newTable;
    Object.assign(table, { seats, komi, names, loaded });
    state.running = true;
    record.reset(newTable.game, newTable.at);
  }

  /** Stop what the engine is doing: its answer belongs to a position that is gone. */
  function halt() {
    controller.abort();
    notice.settle("move");
    Object.assign(state, { busy: false, warming: false, failed: false, standIn: false, hint: "" });
  }

  /** Let the engine move where it is its turn at the end of the game. */
  function next() {
    const atEnd = record.at === record.game.moves.length;
    const waits = watching() && !state.running;
    if (!isShown() || state.busy || waits || !atEnd || record.position.over) return;
    if (seat().kind === "engine") engineTurn();
    else prepare();
  }

  /** Have the engine compiled while a person still thinks. An error is told when it has to move. */
  function prepare() {
    const engine = table.seats.find(({ kind }) => kind === "engine");
    if (engine) warm({ ...record.game, level: engine.level }, controller.signal).catch(() => {});
  }

  async function engineTurn() {
    halt(); // two answers to one question would both be drawn
    const mine = (controller = new AbortController());
    const { signal } = mine;
    change({ busy: true });
    try {
      const edges = await askEngine(signal);
      for (const [index, edge] of edges.entries()) {
        // Nothing waits after the last edge: then it is the turn of the other side.
        if (watching()) await pause(SPEEDS[settings.speed - 1], signal);
        else if (index) await pause(DRAWING, signal);
        record.play([edge]);
      }
      change({ busy: false, warming: false });
      analysis.refresh(); // a person may be to move, who wants a warning before a bad move
      next();
    } catch (error) {
      if (mine === controller && !isAbort(error)) fail(error, engineTurn);
    }
  }

  /** Tell that the engine could not be asked. It is asked again by itself where that can help. */
  function fail(error, again) {
    state.failed = notice.fail("move", error, again);
    change({ busy: false, warming: false });
  }

  async function askEngine(signal) {
    const game = record.shown();
    const { level } = seat();
    // It goes on getting ready while a stand-in moves. What goes wrong is told by the move.
    warm({ ...game, level }, signal, (warming) => state.busy && change({ warming })).catch(() => {});
    const options = { level, seed: Math.floor(Math.random() * 2 ** 31) };
    const { edges, by } = await api.move(game, options, signal);
    signal.throwIfAborted();
    notice.settle("move");
    state.standIn = Boolean(by) && by !== "exact";
    return edges;
  }

  /** Draw an edge for a person. */
  async function press(edge) {
    if (!mayMove() || state.checking || record.position.drawn[edge]) return;
    const { game } = record;
    if (settings.teaching && !(await isConfirmed(edge))) return;
    if (record.game !== game || !mayMove()) return; // another game began meanwhile
    state.hint = "";
    const following = followChain(record.game, record.position.drawn, edge, settings.chains);
    record.play([edge, ...following]);
    if (following.length) onChain(following.length + 1);
    if (engineWaits() && record.at < record.game.moves.length) return redo(); // the same move: the same answer
    next();
  }

  async function isConfirmed(edge) {
    change({ checking: true, hint: t("teach.checking") });
    const confirmed = await confirmMove(edge, record, analysis);
    change({ checking: false, hint: "" });
    return confirmed;
  }

  /** Show another ply. The engine stops there; at the end of the game it goes on. */
  function goTo(at) {
    const ply = Math.max(0, Math.min(at, record.game.moves.length));
    if (ply === record.at) return;
    halt();
    if (watching()) state.running = false;
    record.goTo(ply);
    next();
  }

  /** Return whether somebody decided what to draw at a ply, not the engine and no click before it. */
  function isDecision({ player }, ply) {
    return watching() || (table.seats[player].kind === "person" && !record.game.joined?.includes(ply));
  }

  /** Step back to the last decision of a person, if there is one; while watching, by one move. */
  function undo() {
    const at = record.position.plies.findLastIndex(isDecision);
    if (at >= 0) goTo(at);
  }

  /** Return whether there is a decision to step back to. */
  const mayUndo = () => record.position.plies.some(isDecision);

  /** Step forward to the next decision of a person; while watching, by one move. */
  function redo() {
    const at = replay(record.game).plies.findIndex((ply, index) => index > record.at && isDecision(ply, index));
    goTo(at < 0 ? record.game.moves.length : at);
  }

  async function hint() {
    if (record.position.over || state.busy || state.hinting) return;
    const key = record.key();
    change({ hint: t("hint.searching"), hinting: true });
    analysis.refresh();
    do await analysis.known(HINT_PATIENCE);
    while (analysis.bestEdge() === null && analysis.isRunning() && record.key() === key);
    change({ hinting: false });
    analysis.refresh(); // which may have been asked for the hint alone
    if (record.key() !== key) return;
    const edge = analysis.bestEdge();
    const proven = analysis.latest()?.exact?.best?.includes(edge);
    const place = edge === null ? "" : edgeWords(record.game, edge);
    const words = edge === null ? "hint.none" : proven ? "hint.exact" : "hint.found";
    change({ hint: isShown() ? t(words, { place }) : "" });
    if (edge !== null) analysis.showHint(edge);
    say(state.hint);
  }

  function run(on) {
    halt();
    change({ running: on });
    if (!on || !isShown()) return;
    record.goTo(record.game.moves.length);
    next();
  }

  /** Play one move of a game that is watched, and wait again. */
  async function step() {
    halt();
    change({ running: false });
    if (record.at < record.game.moves.length) return record.goTo(record.at + 1);
    if (record.position.over) return;
    const mine = (controller = new AbortController());
    change({ busy: true });
    try {
      const [edge] = await askEngine(mine.signal);
      record.play([edge]);
    } catch (error) {
      if (mine === controller && !isAbort(error)) fail(error, step);
    }
    if (mine === controller) change({ busy: false, warming: false });
  }

  function setSpeed(speed) {
    remember({ speed });
  }

  return { table, state, sit, halt, next, press, goTo, undo, redo, hint, run, step, setSpeed, letMove: engineTurn, mayMove, mayUndo, engineWaits, watching, seat };
}

/** Wait some time. Rejects as soon as the signal says so. */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
