/** The review of a game: expected margins from the server, mistakes, the list of moves. */

import { api, isAbort } from "./api.js";
import { find, html, replaceChanged, sideSign } from "./dom.js";
import { drawGraph } from "./graph.js";
import { t, waitWords } from "./i18n.js";
import { createMoves } from "./moves.js";
import { tell } from "./notice.js";
import { lostWords } from "./outcome.js";
import { keyOf } from "./record.js";
import { edgeName } from "./rules.js";

const EFFORT = { simulations: 64 };
const REST = 500; // ms without a change before the request

/** Create the review. `isWanted()` returns whether to ask the server, `isShown()` whether the panel is on the screen. */
export function createReview({ record, notice, isWanted, isShown, nameOf, onNews, onMove, onComment, onReviewed, seats }) {
  let lines = []; // by ply
  let reviewed = null; // the game that `lines` belong to
  let complete = false; // the whole game is reviewed
  let controller = null;
  let waited = null; // seconds that the server has been compiling
  const graph = find("#graph");
  const slipAt = (ply, game) => (lineAt(ply, game)?.mistake ? lineAt(ply, game) : null);
  const moves = createMoves({ record, nameOf, slipAt, onMove, onComment });

  /** Request the review of a new game. A variation keeps the review of its game. */
  function refresh() {
    const { game } = record;
    const known = reviewed && keyOf(reviewed) === keyOf(game);
    if (isWanted() && !known && !record.inVariation) {
      stop();
      reviewed = game;
      lines = [];
      complete = false;
      ask(game); // an empty game too: the server prepares itself
    }
    render();
  }

  async function ask(game) {
    const mine = (controller = new AbortController());
    try {
      await new Promise((done) => setTimeout(done, REST));
      if (mine.signal.aborted) return;
      await api.review(game, EFFORT, (line) => mine.signal.aborted || take(line), mine.signal);
      complete = !mine.signal.aborted;
      if (!complete) return;
      onNews();
      onReviewed(accuracyOf(lines), allSlips());
    } catch (error) {
      if (isAbort(error) || mine.signal.aborted) return;
      if (isShown()) notice.fail("review", error, again);
      else stop(); // nobody waits for it
    } finally {
      if (mine === controller) controller = null;
      renderWords();
    }
  }

  /** Abort the request. The next `refresh` repeats an incomplete review. */
  function stop() {
    notice.settle("review");
    controller?.abort();
    controller = null;
    if (complete) return;
    reviewed = null;
    lines = [];
  }

  function again() {
    stop();
    refresh();
  }

  function take(line) {
    waited = line.preparing ?? null;
    if (line.ply !== undefined) lines[line.ply] = line;
    render();
    onNews();
  }

  /** Return the line of a ply if the reviewed game equals `game`, by default the game shown, up to that ply's move. */
  function lineAt(ply, game = record.game) {
    const begun = ({ rows, cols, start, moves }) => keyOf({ rows, cols, start, moves: moves.slice(0, ply + 1) });
    return reviewed && begun(reviewed) === begun(game) ? lines[ply] : undefined;
  }

  function mistakes() {
    return lines.filter((line) => line.mistake);
  }

  /** Return all mistakes as tasks of a practice, the last first, as the review finds them. */
  function allSlips() {
    return mistakes().map(({ ply, player, best, lost, exact }) => ({ ply, player, best, lost, exact, edge: reviewed.moves[ply] })).reverse();
  }

  const ownSlips = () => allSlips().filter(({ player }) => seats()[player].kind === "person");

  /** Return the mistakes of persons; all mistakes if no person made one. */
  const slips = () => (ownSlips().length ? ownSlips() : allSlips());

  /** Return the number of mistakes of persons, or null while it is not known. */
  const slipCount = () => (complete ? ownSlips().length : null);

  function jump() {
    const later = mistakes().find(({ ply }) => ply + 1 > record.at) ?? mistakes()[0];
    if (!later) return;
    record.goTo(later.ply + 1, []);
    tell(noteWords());
  }

  /** Return a text about the move before the position shown if it was a mistake, else "". */
  function noteWords() {
    const slip = record.at ? lineAt(record.at - 1) : null;
    if (!slip?.mistake) return "";
    return t("review.best", { number: record.at, lost: lostWords(slip), edge: edgeName(record.game, slip.best) });
  }

  /** Return the edge that was better than a mistake just made and the player, {edge, player}; else null. */
  function better() {
    const slip = record.at && isShown() ? lineAt(record.at - 1) : null;
    if (!slip?.mistake || record.position.drawn[slip.best]) return null;
    return { edge: slip.best, player: slip.player };
  }

  function render() {
    moves.render();
    if (!isShown()) return;
    drawGraph(graph, { lines, plies: reviewed?.moves.length ?? 0, at: record.at, mistakes: mistakes(), nameOf, waiting: "…", onJump: (ply) => record.goTo(ply, []) });
    renderWords();
  }

  function renderWords() {
    const plies = reviewed?.moves.length ?? 0;
    find("#review-state").textContent = controller ? progressWords(plies) : "";
    find("#review-summary").textContent = plies ? summary() : "";
    replaceChanged(find("#mistakes"), mistakeRows());
    find("#next-mistake").disabled = !mistakes().length;
    find("#practise").disabled = !complete || !slips().length;
  }

  /** Say how far the review is, or that the server prepares itself. */
  function progressWords(plies) {
    if (waited !== null) return t("review.preparing", { wait: waitWords(waited) });
    if (!plies) return "";
    return t("review.running", { at: Math.min(lines.filter(Boolean).length, plies), all: plies });
  }

  /** Return the rows of the table of mistakes: the move, its loss, and a better edge. */
  function mistakeRows() {
    if (!mistakes().length) return [];
    const { moves: edges } = reviewed;
    const name = (edge) => edgeName(reviewed, edge);
    const head = ["move", "loss", "better"].map((column) => html("th", { scope: "col" }, t(`mistakes.${column}`)));
    const rows = mistakes().map((slip) => {
      const words = [sideSign(slip.player, 11), `${slip.ply + 1} ${name(edges[slip.ply])}`];
      const move = html("button", { class: "small", "data-testid": `mistake-${slip.ply + 1}`, onclick: () => onMove(slip.ply + 1, []) }, words);
      return html("tr", {}, html("td", {}, move), html("td", {}, lostWords(slip)), html("td", {}, name(slip.best)));
    });
    return [html("thead", {}, html("tr", {}, head)), html("tbody", {}, rows)];
  }

  function summary() {
    if (!mistakes().length) return complete ? t("review.none") : "";
    const players = [0, 1].map((player) => {
      const own = mistakes().filter((line) => line.player === player);
      const sum = { lost: own.reduce((all, line) => all + line.lost, 0), exact: own.every(({ exact }) => exact) };
      return { name: nameOf(player), count: own.length, lost: lostWords(sum) };
    });
    return t("review.summary", { players });
  }

  new ResizeObserver(() => isShown() && render()).observe(graph);
  return { refresh, stop, render, jump, noteWords, better, slips, slipCount };
}

const SOMETHING = 0.5; // boxes of margin; smaller expected losses are noise

/** Return the percentage of decisions without loss as [{all}] by player; null without decisions. */
function accuracyOf(lines) {
  return [0, 1].map((player) => {
    const own = lines.filter((line) => line.player === player && line.lost != null && line.decision);
    return { all: own.length ? Math.round((100 * own.filter(({ lost }) => lost < SOMETHING).length) / own.length) : null };
  });
}
