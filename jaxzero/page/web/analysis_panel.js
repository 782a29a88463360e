/** The panel of the analysis: the expected result, the best lines, chains and control, the legend. */

import { html, sideSign } from "./dom.js";
import { t, waitWords } from "./i18n.js";
import { formatNumber, marginWords, outcomeOf } from "./outcome.js";
import { edgeName, longChainRule, replay } from "./rules.js";
import { remember, settings } from "./settings.js";

const LONGEST_LINE = 4; // moves
const LESSONS = { close: 1, safe: 2, chain: 3, loop: 6, takes: 1, "hard-hearted": 7, "half-hearted": 7, loony: 4, control: 5 }; // the lesson for each word

/**
 * Return the parts of the panel. `latest` is the analysis so far. `busy` tells whether more of it will arrive, `failed`
 * whether a failed request will be repeated. `showLine(edges)` shows moves on the board; `onLine(edges)` plays them, or is
 * null. `onSwitch()` is called after a switch has changed.
 */
export function panelParts({ latest, record, nameOf, busy, failed, showLine, onLine, onSwitch }) {
  const { game, position } = record;
  const heading = html("div", { class: "panel-head" }, html("h2", {}, t("analysis.title")), latest ? badge(latest, busy) : null);
  if (position.over) return [heading, words("muted", t("analysis.over"))];
  if (!latest) return [heading, words("muted", t(busy || failed ? "analysis.waiting" : "analysis.off"))];
  const outcome = outcomeOf(latest, position, nameOf);
  return [
    heading,
    Number.isInteger(latest.preparing) && words("muted", waitWords(latest.preparing)),
    outcome && words("margin-words", outcome.words),
    outcome?.bounds && words("muted", outcome.bounds),
    outcome?.chances && words("muted", outcome.chances),
    reachWords(latest, game, position, busy),
    bestLines(),
    structureFacts(latest.structure, game, position),
    legend(),
    html("p", { class: "edge-note muted", id: "edge-note" }),
    switches(onSwitch),
  ].filter(Boolean);

  function bestLines() {
    const lines = latest.lines?.length ? latest.lines : latest.line?.length ? [{ line: latest.line, value: null }] : [];
    if (!lines.length) return null;
    const head = words("muted", t(lines.length > 1 ? "analysis.lines" : "analysis.line"));
    return html("div", { class: "lines" }, head, lines.map(oneLine));
  }

  function oneLine({ line, value }, number) {
    const shown = record.shown();
    const { plies } = replay({ ...shown, moves: [...shown.moves, ...line.slice(0, LONGEST_LINE)] });
    const buttons = plies.slice(shown.moves.length).map((ply, index) => moveButton(line, ply, index, number));
    const lead = position.score[0] - position.score[1];
    const margin = lead + (position.player === 0 ? value : -value);
    const worth = value === null ? null : html("span", { class: "worth", title: marginWords(margin, nameOf) }, sideSign(margin < 0 ? 1 : 0, 10), formatNumber(Math.abs(margin)));
    return html("div", { class: "line", "data-testid": number ? `line-${number + 1}` : "line" }, worth, buttons);
  }

  function moveButton(line, ply, index, number) {
    const edge = edgeName(game, ply.edge);
    const show = () => showLine(line.slice(0, index + 1));
    const hide = () => showLine([]);
    return html(
      "button",
      {
        id: `line-${number}-${index}`,
        onpointerenter: show,
        onpointerleave: hide,
        onfocus: show,
        onblur: hide,
        onclick: () => (onLine ? onLine(line.slice(0, index + 1)) : show()),
      },
      sideSign(ply.player, 10),
      edge,
    );
  }
}

function badge(latest, busy) {
  const proven = latest.exact?.value !== undefined; // the stage "exact" may have proven only bounds
  const { edges = [] } = latest;
  const n = edges.filter((edge) => edge.exact).length;
  const stage = ["exact", "done"].includes(latest.stage) ? "search" : latest.stage;
  const text = proven ? t(n === edges.length ? "stage.exact" : "stage.partly", { n, all: edges.length }) : t(`stage.${stage}`, { n: latest.simulations });
  return html("span", { class: `badge ${proven ? "exact" : ""} ${busy ? "busy" : ""}`, "data-testid": "stage" }, text);
}

/** Return a note on how far the solver reaches if the finished analysis has not proven the position, else null. */
function reachWords(latest, { rows, cols }, { drawn }, busy) {
  if (busy || latest.exact?.value !== undefined) return null;
  return words("muted", t(Math.max(rows, cols) > 7 ? "analysis.large" : "analysis.reach", { n: drawn.filter((each) => !each).length }));
}

function structureFacts(structure, game, position) {
  if (!structure) return null;
  const lengths = (name) => structure.chains.filter((chain) => nameOfChain(chain) === name).map((chain) => chain.length).join(" + ");
  const named = (name, topic) => lengths(name) && lesson(topic, t(`analysis.${name}`, { n: lengths(name) }));
  const facts = [
    named("free", "close"),
    named("chain", "chain"),
    named("loop", "loop"),
    html("span", {}, lesson("safe", t("analysis.safe", { n: structure.safe })), " · ", lesson("control", t("analysis.long", { n: structure.long }))),
    structure.safe > 0 && lesson("control", t("analysis.target", { ...longChainRule(game, position), all: structure.long })),
    structure.control && lesson("control", t(`analysis.control.${structure.control}`)),
  ];
  return html("ul", { class: "facts" }, facts.filter(Boolean).map((fact) => html("li", {}, fact)));
}

/** Return "free" for the boxes to take now, which need not touch, else "chain" or "loop". */
const nameOfChain = ({ free, kind }) => (free ? "free" : kind);

function lesson(name, text) {
  return html("a", { href: `#lesson-${LESSONS[name]}` }, text);
}

let isLegendOpen = false; // kept here because every line of the analysis rebuilds the panel

function legend() {
  const step = (text, cost) => html("span", { class: `key cost-${cost}` }, text);
  const steps = ["★", "0.1+", "0.8+", "1.5+", "3+"]; // STEPS of overlay.js, rounded
  return html(
    "details",
    { class: "legends muted", open: isLegendOpen, ontoggle: ({ target }) => (isLegendOpen = target.open) },
    html("summary", { id: "legend" }, t("analysis.legend")),
    html("div", {}, t("analysis.colours")),
    html("div", { class: "legend" }, steps.map(step)),
    html("div", {}, t("analysis.guess")),
  );
}

function switches(onSwitch) {
  const flip = (name) => () => {
    remember({ [name]: !settings[name] });
    onSwitch();
  };
  const one = (name, label) =>
    html("button", { id: `switch-${name}`, class: "small", "aria-pressed": String(settings[name]), onclick: flip(name) }, t(label));
  const all = { everyEdge: "analysis.every", chainsShown: "analysis.chains" };
  return html("div", { class: "row" }, Object.entries(all).map(([name, label]) => one(name, label)));
}

function words(style, text) {
  return html("p", { class: style }, text);
}
