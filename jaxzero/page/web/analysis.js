/** The analysis of the position shown: the request, the drawings on the board, the text about an edge. */

import { panelParts } from "./analysis_panel.js";
import { api, isAbort } from "./api.js";
import { find, refill } from "./dom.js";
import { t } from "./i18n.js";
import { lostWords, percent } from "./outcome.js";
import { clear, drawChains, drawCosts, drawHint, drawLine, isBest } from "./overlay.js";
import { edgeName } from "./rules.js";
import { settings } from "./settings.js";

const EFFORT = { simulations: 256, seconds: 20 };
const REST = 150; // ms before a request; stepping quickly through a game sends only one

/**
 * Create the analysis.
 *
 * `wanted()` returns whether to ask the server, `isShown()` whether to show the answer. `nameOf(player)` a name. `better()` returns an edge to mark as {edge, player}, or null: the edge that a person has touched, or
 * the better one after a mistake. `linePlayer()` returns a function that plays a line, or null. `notice` shows errors.
 */
export function createAnalysis({ record, board, notice, panel, wanted, isShown, nameOf, better, linePlayer }) {
  let latest = null; // the answer so far; later lines replace fields of earlier ones
  let controller = null; // of the running request
  let failed = false; // the request has failed and will be repeated
  let complete = false; // `latest` is the final answer
  let key = ""; // of the position that `latest` belongs to
  let waiting = [];
  let hinted = null;
  let pointed = null; // the edge under the pointer or focus

  /** Request the position shown, unless its answer is known or on its way. Stop a request that is no longer wanted. */
  function refresh() {
    if (!wanted()) stop();
    if (key === record.key() && (controller || failed || complete || !wanted())) render();
    else restart();
  }

  function restart() {
    stop();
    key = record.key();
    latest = null;
    complete = false;
    hinted = null;
    if (wanted() && !record.position.over) ask();
    render();
  }

  /** Abort the request. The answer so far stays. */
  function stop() {
    notice.settle("analysis");
    failed = false;
    controller?.abort();
    controller = null;
    waiting.splice(0).forEach(({ finish }) => finish(null));
  }

  async function ask() {
    const mine = (controller = new AbortController());
    const game = record.shown();
    try {
      await new Promise((done) => setTimeout(done, REST));
      if (mine.signal.aborted) return;
      await api.analyse(game, EFFORT, (line) => mine.signal.aborted || take(line), mine.signal);
      complete = !mine.signal.aborted;
    } catch (error) {
      if (!isAbort(error) && !mine.signal.aborted) failed = notice.fail("analysis", error, restart);
    } finally {
      if (mine === controller) {
        controller = null;
        settle(true);
        render();
      }
    }
  }

  function take(line) {
    latest = { ...latest, ...line };
    notice.settle("analysis");
    settle(false);
    render();
  }

  /** Answer those who wait for no more than is known; all of them if the request has ended. */
  function settle(ended) {
    const served = waiting.filter(({ enough }) => ended || enough(latest));
    waiting = waiting.filter((each) => !served.includes(each));
    for (const { finish } of served) finish(latest);
  }

  /** Resolve with the analysis once it is `enough`, or with the answer so far after some ms; with null if stopped. */
  function known(milliseconds, enough = isKnown) {
    if (enough(latest)) return Promise.resolve(latest);
    return new Promise((finish) => {
      waiting.push({ enough, finish });
      setTimeout(() => finish(latest), milliseconds);
    });
  }

  const bestEdge = () => latest?.best ?? null;

  /** Return the best edge if the analysis is a verdict, else null. */
  const bestJudged = () => (isVerdict(latest) ? latest.best : null);

  /** Name an edge as a hint: the proven best, or the best that the search knows. */
  function hintWords(edge, place) {
    return t(latest?.exact?.best?.includes(edge) ? "hint.exact" : "hint.found", { place });
  }

  function showHint(edge) {
    hinted = edge;
    draw();
  }

  function draw() {
    const layers = board.layers();
    clear(layers);
    const { game, position } = record;
    if (isShown() && latest) {
      if (settings.chainsShown) drawChains(layers.under, game, position.drawn, latest.structure?.chains ?? []);
      drawCosts(layers.costs, game, markedEdges(latest, settings.everyEdge));
    }
    const mark = hinted === null ? better() : { edge: hinted, player: position.player };
    if (mark) drawHint(layers.marks, game, mark.edge, mark.player);
  }

  /** Show the moves of a line on the board. An empty line restores the usual drawings. */
  function showLine(line) {
    const { costs, marks } = board.layers();
    marks.replaceChildren();
    costs.classList.toggle("dimmed", line.length > 0);
    if (line.length) drawLine(marks, record.shown(), line);
    else draw();
  }

  /** Describe the edge under the pointer or focus. Return the text, or only the edge's place if it is not analysed. */
  function describe(edge) {
    pointed = edge;
    const found = edge === null || !isShown() ? null : latest?.edges?.find((each) => each.edge === edge);
    const words = found && edgeNote(found);
    const note = find("#edge-note", panel);
    if (note) note.textContent = words ?? t("analysis.pointAt");
    return words ?? (edge === null ? "" : edgeName(record.game, edge));
  }

  function edgeNote(edge) {
    const name = edgeName(record.game, edge.edge);
    const kind = `${t(`class.${edge.class}`)} (${t(`class.${edge.class}.note`)})`;
    const lost = edge.lost === null || isBest(edge) ? edge.lost : lostWords(edge);
    const visits = latest.edges.reduce((sum, each) => sum + (each.visits ?? 0), 0);
    const share = percent((edge.visits ?? 0) / Math.max(1, visits));
    return t("analysis.edge", { edge: name, lost, exact: edge.exact, kind, share });
  }

  function render() {
    draw();
    panel.hidden = !isShown();
    if (panel.hidden) return;
    if (panel.matches(":active")) return void setTimeout(render, 100); // replacing a pressed button would lose its click
    refill(panel, ...panelParts({ latest, record, nameOf, busy: controller !== null, failed, showLine, onLine: linePlayer(), onSwitch: render }));
    describe(pointed);
  }

  return {
    refresh,
    stop,
    draw,
    known,
    judged: (milliseconds) => known(milliseconds, isVerdict),
    bestEdge,
    bestJudged,
    hintWords,
    showHint,
    describe,
    isRunning: () => controller !== null || failed,
    hasFailed: () => failed,
  };
}

/** Return whether an analysis has a best edge and losses of edges. */
const isKnown = (line) => line?.best != null && line.edges.some((edge) => edge.lost !== null);

/** Return whether an analysis says as much as the review of a mistake: it is proven, or searched as long. */
const isVerdict = (line) => isKnown(line) && (line.exact?.value !== undefined || line.simulations >= EFFORT.simulations);

const BEST = 3; // number of edges marked as the best if the answer has no lines
const COSTLY = 0.75; // boxes of margin; edges that lose this much (rounded: a box) are marked too

/** Return the edges to mark: the best and the costly ones, or with `every` all of them. */
function markedEdges({ edges = [], lines = [] }, every) {
  const known = edges.filter((edge) => edge.lost !== null);
  if (every || !known.length) return every ? edges : [];
  const best = lines.length ? lines.map(({ edge }) => edge) : [...known].sort((a, b) => a.lost - b.lost).slice(0, BEST).map(({ edge }) => edge);
  return known.filter(({ edge, lost }) => best.includes(edge) || lost >= COSTLY);
}
