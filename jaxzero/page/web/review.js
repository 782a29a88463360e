/** The review of a game: expected margins from the server, mistakes, the list of moves. */

import { api, isAbort } from "./api.js";
import { find, html, replaceChanged, sideSign } from "./dom.js";
import { drawGraph } from "./graph.js";
import { t, waitWords } from "./i18n.js";
import { createMoves } from "./moves.js";
import { tell } from "./notice.js";
import { formatNumber, lostWords } from "./outcome.js";
import { keyOf } from "./record.js";
import { edgeName } from "./rules.js";

const EFFORT = { simulations: 64 };
const KEPT = "jaxzero-review"; // the key of the last complete review in the storage of this tab
const REST = 500; // ms without a change before the request

export function createReview({ record, notice, isShown, nameOf, onNews, onMove, onComment, onReviewed, seats }) {
  let lines = []; // by ply
  let reviewed = null; // the game that `lines` belong to
  let complete = false; // the whole game is reviewed
  let controller = null;
  let began = 0; // the time of the request, in ms
  let waited = null; // seconds that the server has been compiling
  const graph = find("#graph");
  const slipAt = (ply, game) => (lineAt(ply, game)?.mistake ? lineAt(ply, game) : null);
  const moves = createMoves({ record, nameOf, slipAt, onMove, onComment });

  /** Request the review of a new game. A variation keeps the review of its game. */
  function refresh() {
    const { game } = record;
    const known = reviewed && keyOf(reviewed) === keyOf(game);
    if (isShown() && !known && !record.inVariation) {
      stop();
      reviewed = game;
      lines = keptLines(game) ?? [];
      complete = lines.length > 0;
      if (game.moves.length && !complete) ask(game);
    }
    render();
  }

  async function ask(game) {
    const mine = (controller = new AbortController());
    try {
      await new Promise((done) => setTimeout(done, REST));
      if (mine.signal.aborted) return;
      began = Date.now();
      await api.review(game, EFFORT, (line) => mine.signal.aborted || take(line), mine.signal);
      complete = !mine.signal.aborted;
      if (!complete) return;
      keepLines(game, lines);
      onReviewed(accuracyOf(lines), allSlips());
    } catch (error) {
      if (isAbort(error) || mine.signal.aborted) return;
      notice.fail("review", error, again);
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

  /** Return the mistakes of persons; all mistakes if there is none of a person in the whole game. */
  function slips() {
    const own = allSlips().filter(({ player }) => seats()[player].kind === "person");
    return own.length || !complete ? own : allSlips();
  }

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
    find("#review-state").textContent = controller && plies ? progressWords(plies) : "";
    find("#review-summary").textContent = plies ? summary() : "";
    replaceChanged(find("#mistakes"), mistakeRows());
    find("#next-mistake").disabled = !mistakes().length;
    find("#practise").disabled = !slips().length;
  }

  /** Say how far the review is, and how long it still takes if it goes on as until now. */
  function progressWords(plies) {
    if (waited !== null) return waitWords(waited);
    const seen = lines.filter(Boolean).length;
    const seconds = Math.ceil(((Date.now() - began) / 1000 / seen) * Math.max(0, plies + 1 - seen));
    return t(seen > 1 ? "review.left" : "review.running", { at: Math.min(seen, plies), all: plies, seconds });
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
      const lost = formatNumber(own.reduce((sum, line) => sum + line.lost, 0));
      return { name: nameOf(player), count: own.length, lost };
    });
    return t("review.summary", { players });
  }

  new ResizeObserver(() => isShown() && render()).observe(graph);
  return { refresh, stop, render, jump, noteWords, better, slips };
}

function keepLines(game, lines) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ key: keyOf(game), lines }));
  } catch {
    // Storage is full or refused: a reload repeats the review.
  }
}

/** Return the lines of the complete review of a game that this tab has kept, or null. */
function keptLines(game) {
  try {
    const { key, lines } = JSON.parse(sessionStorage.getItem(KEPT));
    return key === keyOf(game) ? lines : null;
  } catch {
    return null;
  }
}

const SOMETHING = 0.5; // boxes of margin; smaller expected losses are noise

/** Return the percentage of decisions without loss as [{all}] by player; null without decisions. */
function accuracyOf(lines) {
  return [0, 1].map((player) => {
    const own = lines.filter((line) => line.player === player && line.lost != null && line.decision);
    return { all: own.length ? Math.round((100 * own.filter(({ lost }) => lost < SOMETHING).length) / own.length) : null };
  });
}
