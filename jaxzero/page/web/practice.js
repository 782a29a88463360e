/** Practice of mistakes: show the position before a mistake, let the person try again, and judge the move. */

import { button, find, html, refill, reveal, row } from "./dom.js";
import { t } from "./i18n.js";
import { lostWords } from "./outcome.js";
import { edgeName } from "./rules.js";
import { reasonsOf } from "./teach.js";

const PATIENCE = 20000; // ms to wait for the analysis
const AS_GOOD = 0.5; // boxes of margin that a good move may lose; smaller expected losses are noise

/**
 * Create the practice. A task is a mistake {ply, edge, lost, exact, best} of the game on the table. A task from another game
 * also has `table`, and `onTable(table)` opens that game first.
 */
export function createPractice({ record, analysis, onTable, onChange }) {
  const panel = find("#practice-panel");
  let tasks = [];
  let number = 0;
  let answer = null; // {mood, parts}; parts() returns texts
  let place = null; // the key of the task's position; null until that position is on the board

  const isOn = () => tasks.length > 0;
  const isSolved = () => answer?.mood === "good";

  function start(newTasks) {
    tasks = newTasks;
    show(0);
  }

  function show(newNumber) {
    number = newNumber;
    answer = null;
    place = null;
    const { table, ply } = tasks[number];
    if (table) onTable(table);
    record.goTo(ply, []);
    place = record.key();
    change();
    reveal(panel);
    reveal(find("#board-host"));
  }

  /** End the practice if the position shown is not the position of the task. */
  function refresh() {
    if (place !== null && record.key() !== place) end();
  }

  function end() {
    if (!isOn()) return;
    place = null;
    tasks = [];
    change();
  }

  function change() {
    render();
    onChange();
  }

  /** Judge an edge that a person tries in the task. */
  async function press(edge) {
    const task = tasks[number];
    if (record.position.drawn[edge] || answer?.mood === "busy") return;
    answer = { mood: "busy", parts: () => [t("teach.checking")] };
    change();
    const found = await analysis.judged(PATIENCE);
    if (task !== tasks[number]) return;
    const rated = found?.edges?.find((each) => each.edge === edge);
    const isKnown = rated && rated.lost !== null; // while the server compiles, the analysis has only the structure
    answer = isKnown ? judge(rated, found) : { mood: "bad", parts: () => [t("hint.none")] };
    change();
    analysis.showHint(edge);
    reveal(panel);
  }

  function judge(rated, found) {
    const place = edgeName(record.game, rated.edge);
    const good = rated.lost <= AS_GOOD;
    if (good) return { mood: "good", parts: () => [t(rated.exact ? "practice.proven" : "practice.good", { place })] };
    return { mood: "bad", parts: () => [t("practice.bad", { place, lost: lostWords(rated) }), ...reasonsOf(record, rated, found)] };
  }

  function solution() {
    const edge = analysis.bestJudged() ?? tasks[number].best;
    answer = { mood: "part", parts: () => [analysis.hintWords(edge, edgeName(record.game, edge))] };
    change();
    analysis.showHint(edge);
  }

  function render() {
    panel.hidden = !isOn();
    if (panel.hidden) return;
    const { ply, edge } = tasks[number];
    const last = number + 1 === tasks.length;
    const task = t("practice.task", { number: ply + 1, edge: edgeName(record.game, edge), lost: lostWords(tasks[number]) });
    refill(
      panel,
      html("div", { class: "panel-head" }, html("h2", {}, t("practice.title", { number: number + 1, all: tasks.length }))),
      html("p", {}, task),
      html("div", { class: `answer ${answer?.mood ?? ""}`, role: "status", "data-testid": "practice-answer" }, (answer?.parts() ?? []).map((text) => html("p", {}, text))),
      row(
        button("practice-show", t("learn.show"), solution, { disabled: isSolved() }),
        button("practice-next", t(last ? "done" : "practice.next"), () => (last ? end() : show(number + 1)), { class: isSolved() ? "primary" : "" }),
        last ? null : button("practice-end", t("done"), end),
      ),
    );
  }

  return { isOn, start, press, end, refresh, render, statusWords: () => t("practice.status") };
}
