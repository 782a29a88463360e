/** The analysis of the position shown: the request, drawings on the board, the panel. */

import { api, isAbort } from "./api.js";
import { edgeWords } from "./board.js";
import { find, html, sideSign, svg } from "./dom.js";
import { t } from "./i18n.js";
import { distributionChart, outcomeOf, percent, winBar } from "./outcome.js";
import { clear, drawChains, drawCosts, drawHint, drawLine, formatLost } from "./overlay.js";
import { edgeName, replay } from "./rules.js";
import { remember, settings } from "./settings.js";

const REST = 150; // ms of rest before a request: stepping through a game asks only where it stops

/**
 * Create the analysis.
 *
 * `wanted()` tells whether to ask the server at all, `komi()` is the komi of the game, `nameOf` names
 * a player, `better()` is the edge that was better than a mistake just made, `notice` shows errors.
 */
export function createAnalysis({ record, board, notice, panel, wanted, komi, nameOf, better }) {
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
    if (settings.analysis && latest) {
      if (settings.chainsShown) drawChains(layers.under, game, position.drawn, latest.structure?.chains ?? []);
      drawCosts(layers.costs, game, latest.edges ?? [], settings.numbers);
    }
    const mark = hinted === null ? better() : { edge: hinted, player: position.player };
    if (mark) drawHint(layers.marks, game, mark.edge, mark.player);
  }

  function showLine(length) {
    const { costs, marks } = board.layers();
    marks.replaceChildren();
    costs.classList.toggle("dimmed", length > 0);
    if (length) drawLine(marks, record.shown(), latest.line.slice(0, length));
    else draw();
  }

  /** Say in words what the edge under the pointer or focus does; return where it is if that is all. */
  function describe(edge) {
    pointed = edge;
    const found = edge === null || !settings.analysis ? null : latest?.edges?.find((each) => each.edge === edge);
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
    panel.hidden = !settings.analysis;
    if (panel.hidden) return;
    const focused = panel.contains(document.activeElement) ? document.activeElement.id : "";
    panel.replaceChildren(heading(), ...contents());
    if (focused) find(`#${focused}`, panel)?.focus();
    describe(pointed);
  }

  function heading() {
    return html("div", { class: "panel-head" }, html("h2", {}, t("analysis.title")), latest ? badge() : null);
  }

  function badge() {
    const exact = latest.exact?.value !== undefined; // stage exact may have proven bounds only
    const stage = latest.stage === "exact" ? "search" : latest.stage;
    const words = t(exact ? "stage.exact" : `stage.${stage}`, { n: latest.simulations });
    return html("span", { class: `badge ${exact ? "exact" : ""} ${controller ? "busy" : ""}`, "data-testid": "stage" }, words);
  }

  function contents() {
    if (record.position.over) return [words("muted", t("analysis.over"))];
    if (!latest) return [words("muted", t(controller || failed ? "analysis.waiting" : "analysis.off"))];
    const outcome = outcomeOf(latest, record.position, komi(), nameOf);
    return [
      latest.preparing && words("muted", t("warming")),
      outcome && words("margin-words", outcome.words),
      outcome?.bounds && words("muted", outcome.bounds),
      outcome?.chances && winBar(outcome.chances),
      outcome?.final.length ? distributionChart(outcome.final, nameOf) : null,
      bestLine(),
      structureFacts(latest.structure),
      legend(),
      html("p", { class: "edge-note muted", id: "edge-note" }),
      switches(),
    ].filter(Boolean);
  }

  function bestLine() {
    const line = latest.line ?? [];
    if (!line.length) return null;
    const game = record.shown();
    const { plies } = replay({ ...game, moves: [...game.moves, ...line] });
    const buttons = plies.slice(game.moves.length).map((ply, index) => {
      const edge = edgeName(game, ply.edge);
      return html(
        "button",
        {
          id: `line-${index}`,
          "aria-label": t("analysis.lineLabel", { number: index + 1, edge }),
          onpointerenter: () => showLine(index + 1),
          onpointerleave: () => showLine(0),
          onfocus: () => showLine(index + 1),
          onblur: () => showLine(0),
          onclick: () => showLine(index + 1),
        },
        sideSign(ply.player, 10),
        edge,
      );
    });
    return html("div", {}, words("muted", t("analysis.line")), html("div", { class: "line", "data-testid": "line" }, buttons));
  }

  function structureFacts(structure) {
    if (!structure) return null;
    const lengths = (kind) =>
      structure.chains.filter((chain) => chain.kind === kind).map((chain) => chain.length).join(" + ");
    const facts = [
      t("analysis.chainsList", { chains: lengths("chain"), loops: lengths("loop") }),
      `${t("analysis.safe", { n: structure.safe })} · ${t("analysis.long", { n: structure.long })}`,
      structure.control && t(`analysis.control.${structure.control}`),
    ];
    return html("ul", { class: "facts" }, facts.filter(Boolean).map((fact) => html("li", {}, fact)));
  }

  function legend() {
    const sample = (kind) =>
      html(
        "span",
        { title: t(`class.${kind}.note`) },
        svg("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 26, y1: 4, y2: 4, class: `class-${kind}` })),
        t(`class.${kind}`),
      );
    const step = (words, cost) => html("span", { class: `key cost-${cost}` }, words);
    const steps = ["★", "0.1+", "0.8+", "1.5+", "3+"]; // as in overlay.js, rounded
    return html(
      "div",
      { class: "legends muted" },
      html("div", {}, t("analysis.colours")),
      html("div", { class: "legend" }, steps.map(step)),
      html("div", { class: "legend" }, ["safe", "hard-hearted", "half-hearted", "loony"].map(sample)),
      html("div", {}, t("analysis.thick")),
    );
  }

  function switches() {
    const one = (name, label) =>
      html(
        "button",
        { id: `switch-${name}`, class: "small", "aria-pressed": String(settings[name]), onclick: () => flip(name) },
        t(label),
      );
    return html("div", { class: "row" }, one("numbers", "analysis.numbers"), one("chainsShown", "analysis.chains"));
  }

  function flip(name) {
    remember({ [name]: !settings[name] });
    render();
  }

  return {
    refresh,
    restart,
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

function words(style, text) {
  return html("p", { class: style }, text);
}
