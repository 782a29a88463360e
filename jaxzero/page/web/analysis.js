/** The analysis of the position shown: the request, drawings on the board, words on an edge. */

import { panelParts } from "./analysis_panel.js";
import { api, isAbort } from "./api.js";
import { edgeWords } from "./board.js";
import { find } from "./dom.js";
import { t } from "./i18n.js";
import { percent } from "./outcome.js";
import { clear, drawChains, drawCosts, drawHint, drawLine, drawOwners, formatLost } from "./overlay.js";
import { edgeName } from "./rules.js";
import { settings } from "./settings.js";

const REST = 150; // ms of rest before a request: stepping through a game asks only where it stops

/**
 * Create the analysis.
 *
 * `wanted()` tells whether to ask the server at all, `isShown()` whether to show the answer, `komi()` is the komi of the game, `nameOf` names
 * a player, `better()` is the edge that was better than a mistake just made, `linePlayer()` returns a function that
 * plays a line, or null, `notice` shows errors.
 */
export function createAnalysis({ record, board, notice, panel, wanted, isShown, komi, nameOf, better, linePlayer }) {
  let latest = null; // the lines so far, the later replacing the earlier
  let controller = null; // of the request that runs
  let failed = false; // the request will be repeated
  let complete = false; // nothing will come after `latest`
  let key = ""; // of the position that `latest` belongs to
  let waiting = [];
  let hinted = null;
  let pointed = null; // the edge under the pointer or focus

  /** Ask about the position shown, unless it is known; give up what nobody wants any more. */
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

  /** End the request; what it has told so far stays. */
  function stop() {
    notice.settle("analysis");
    failed = false;
    controller?.abort();
    controller = null;
    waiting.splice(0).forEach((finish) => finish(null));
  }

  async function ask() {
    const mine = (controller = new AbortController());
    const game = record.shown();
    try {
      await new Promise((done) => setTimeout(done, REST));
      if (mine.signal.aborted) return;
      await api.analyse(game, { simulations: 256, seconds: settings.effort }, (line) => mine.signal.aborted || take(line), mine.signal);
      complete = !mine.signal.aborted;
    } catch (error) {
      if (!isAbort(error) && !mine.signal.aborted) failed = notice.fail("analysis", error, restart);
    } finally {
      if (mine === controller) {
        controller = null;
        settle(() => true);
        render();
      }
    }
  }

  function take(line) {
    latest = { ...latest, ...line };
    notice.settle("analysis");
    settle(isKnown);
    render();
  }

  function settle(enough) {
    if (enough(latest)) waiting.splice(0).forEach((finish) => finish(latest));
  }

  /** Resolve with the analysis once it knows what edges lose, or with null after some ms. */
  function known(milliseconds) {
    if (isKnown(latest)) return Promise.resolve(latest);
    return new Promise((finish) => {
      waiting.push(finish);
      setTimeout(() => finish(latest), milliseconds);
    });
  }

  function isKnown(line) {
    return Boolean(line?.edges?.some((edge) => edge.lost !== null));
  }

  function bestEdge() {
    if (!latest) return null;
    if (latest.exact?.best?.length) return latest.exact.best[0];
    if (latest.line?.length) return latest.line[0];
    const rated = (latest.edges ?? []).filter((edge) => edge.lost !== null);
    return rated.sort((a, b) => a.lost - b.lost)[0]?.edge ?? null;
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
      if (settings.ownersShown) drawOwners(layers.owners, game, latest.owners ?? [], position.player);
      drawCosts(layers.costs, game, markedEdges(latest, settings.everyEdge), settings.numbers);
    }
    const mark = hinted === null ? better() : { edge: hinted, player: position.player };
    if (mark) drawHint(layers.marks, game, mark.edge, mark.player);
  }

  /** Show the moves of a line on the board, none: what is shown without it. */
  function showLine(line) {
    const { costs, marks } = board.layers();
    marks.replaceChildren();
    costs.classList.toggle("dimmed", line.length > 0);
    if (line.length) drawLine(marks, record.shown(), line);
    else draw();
  }

  /** Say in words what the edge under the pointer or focus does; return where it is if that is all. */
  function describe(edge) {
    pointed = edge;
    const found = edge === null || !isShown() ? null : latest?.edges?.find((each) => each.edge === edge);
    const words = found && edgeNote(found);
    const note = find("#edge-note", panel);
    if (note) note.textContent = words ?? t("analysis.pointAt");
    return words ?? (edge === null ? "" : `${edgeName(record.game, edge)}: ${edgeWords(record.game, edge)}`);
  }

  function edgeNote(edge) {
    const name = edgeName(record.game, edge.edge);
    const kind = `${t(`class.${edge.class}`)} (${t(`class.${edge.class}.note`)})`;
    const lost = edge.lost === null ? null : formatLost(edge.lost);
    const visits = latest.edges.reduce((sum, each) => sum + (each.visits ?? 0), 0);
    const share = percent((edge.visits ?? 0) / Math.max(1, visits));
    return t("analysis.edge", { edge: name, lost, kind, share });
  }

  function render() {
    draw();
    panel.hidden = !isShown();
    if (panel.hidden) return;
    if (panel.matches(":active")) return void setTimeout(render, 100); // a click on what is replaced does nothing
    const focused = panel.contains(document.activeElement) ? document.activeElement.id : "";
    panel.replaceChildren(...panelParts({ latest, record, komi, nameOf, busy: controller !== null, failed, showLine, onLine: linePlayer(), onSwitch: render }));
    if (focused) find(`#${focused}`, panel)?.focus();
    describe(pointed);
  }

  return {
    refresh,
    stop,
    draw,
    known,
    bestEdge,
    showHint,
    describe,
    latest: () => latest,
    isRunning: () => controller !== null || failed,
  };
}

const BEST = 3; // edges that are marked as the best
const COSTLY = 0.75; // of the margin: edges that lose as much are marked too, rounded a box

/** Return the edges to mark: the best and the costly ones, or with `every` all of them. */
function markedEdges({ edges = [], lines = [] }, every) {
  const known = edges.filter((edge) => edge.lost !== null);
  if (every || !known.length) return every ? edges : [];
  const best = lines.length ? lines.map(({ edge }) => edge) : [...known].sort((a, b) => a.lost - b.lost).slice(0, BEST).map(({ edge }) => edge);
  return known.filter(({ edge, lost }) => best.includes(edge) || lost >= COSTLY);
}
