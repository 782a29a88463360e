/** The trainer: endless problems by theme, graded by the exact solver, and the rating of the person. */

import { api, isAbort } from "./api.js";
import { createBoard, edgeWords } from "./board.js";
import { find, html, reveal } from "./dom.js";
import { t } from "./i18n.js";
import { clear, drawChains, drawCosts, drawHint } from "./overlay.js";
import { ratedAfter } from "./rating.js";
import { createRecord } from "./record.js";
import { remember, settings, stored } from "./settings.js";

export const THEMES = ["chains", "handback", "parity", "loops", "opening", "berlekamp"];
const MAX_COUNTED = 6; // the highest number on the buttons, unless the answer is higher

/** Return the list of themes, with the rating of the person. */
export function themeList() {
  return html(
    "section",
    { id: "themes" },
    html("h2", {}, t("train.title")),
    html("p", { class: "muted" }, t("train.lead")),
    html("p", { class: "muted", "data-testid": "training" }, ratingWords()),
    html("ol", { class: "lesson-list themes" }, THEMES.map(themeEntry)),
  );
}

function themeEntry(theme) {
  const words = [html("strong", {}, t(`train.${theme}.title`)), html("span", { class: "muted" }, t(`train.${theme}.text`))];
  return html("li", {}, html("a", { href: `#train-${theme}`, "data-testid": `train-${theme}` }, html("span", {}, words)));
}

function ratingWords() {
  return t(settings.training.tried ? "train.record" : "train.rating", settings.training);
}

export function createTrainer({ parent, notice }) {
  let theme = null;
  let problem = null; // the server's problem; null while it is requested
  let answer = null; // of the person: {edge or count, right, before}; `before` is the rating before the answer
  let record = null;
  let board = null;
  let request = null;

  function open(newTheme) {
    theme = newTheme;
    next();
  }

  async function next() {
    leave();
    const { signal } = (request = new AbortController());
    problem = answer = null;
    render();
    const seed = Math.floor(Math.random() * 2 ** 32);
    try {
      problem = await api.problem({ theme, seed, rating: settings.training.rating }, signal);
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) notice.fail("problem", error, next);
      return;
    }
    if (signal.aborted) return;
    record = createRecord(problem.game);
    render();
    if (problem.kind === "edge") board.focus();
    else find("#train-counts button").focus();
  }

  function leave() {
    request?.abort();
    notice.settle("problem");
  }

  function render() {
    const host = html("div", { class: "board-host" });
    board = createBoard(host, { onEdge: press, prefix: "train-" });
    parent.replaceChildren(page(host));
    show();
  }

  function page(host) {
    return html(
      "article",
      { class: "lesson" },
      html(
        "div",
        { class: "text" },
        html("h1", {}, t(`train.${theme}.title`)),
        html("p", { id: "train-question", "data-testid": "train-question" }, t(`train.question.${problem?.kind ?? "waiting"}`)),
      ),
      html("div", { class: "practice" }, html("p", { class: "status", id: "train-rating", "data-testid": "train-rating" }), host),
      html(
        "div",
        { class: "after" },
        problem?.kind === "count" ? countButtons() : null,
        html("p", { class: "answer", role: "status", id: "train-answer", "data-testid": "train-answer" }),
        html("div", { class: "row" }, html("button", { onclick: next, id: "train-next", "data-testid": "train-next" }, t("train.next"))),
        html("a", { href: "#train" }, t("train.all")),
      ),
    );
  }

  function countButtons() {
    const numbers = [...Array(Math.max(MAX_COUNTED, problem.answers.count) + 1).keys()];
    const button = (n) => html("button", { onclick: () => count(n), "data-testid": `train-count-${n}` }, String(n));
    return html("div", { class: "row", id: "train-counts", role: "group", "aria-label": t("train.question.count") }, numbers.map(button));
  }

  function press(edge) {
    if (answer || problem?.kind !== "edge" || record.position.drawn[edge]) return;
    record.play([edge]);
    finish({ edge, right: problem.answers[edge] === 0 });
  }

  function count(number) {
    if (!answer) finish({ count: number, right: number === problem.answers.count });
  }

  function finish(given) {
    const { rating, solved, tried } = stored().training; // another tab may have trained too
    answer = { ...given, before: rating };
    const after = ratedAfter(rating, problem.rating, Number(given.right));
    remember({ training: { rating: after, solved: solved + Number(given.right), tried: tried + 1 } });
    show();
    find("#train-next").focus({ preventScroll: true });
    reveal(find(".lesson .after", parent));
  }

  function show() {
    find("#train-rating").textContent = answer ? changeWords() : ratingWords();
    find("#train-question").classList.toggle("busy", !problem);
    find("#train-next").classList.toggle("primary", Boolean(answer));
    if (!problem) return;
    const { game, position } = record;
    const last = answer?.edge === undefined ? [] : [answer.edge];
    board.show(game, position, { last, enabled: !answer && problem.kind === "edge" });
    clear(board.layers());
    if (answer) showAnswer();
  }

  function changeWords() {
    const { rating } = settings.training;
    const change = rating - answer.before;
    return t("train.change", { rating, change: change < 0 ? `−${-change}` : `+${change}`, problem: problem.rating });
  }

  function showAnswer() {
    const element = find("#train-answer");
    element.className = `answer ${answer.right ? "good" : "bad"}`;
    element.textContent = t("train.answer", { verdict: verdict(), reason: t(`train.reason.${problem.reason}`) });
    for (const button of element.parentElement.querySelectorAll("#train-counts button")) button.disabled = true;
    const { game, position } = record;
    if (problem.kind === "count") return drawChains(board.layers().under, game, position.drawn, problem.chains);
    const others = Object.entries(problem.answers).filter(([edge]) => Number(edge) !== answer.edge);
    drawCosts(board.layers().costs, game, others.map(([edge, lost]) => ({ edge: Number(edge), lost })), true);
    if (!answer.right) drawHint(board.layers().marks, game, bestEdge(), 0);
  }

  function bestEdge() {
    return Number(Object.keys(problem.answers).find((edge) => problem.answers[edge] === 0));
  }

  /** Return a text that tells whether the answer is right and, if not, the right one. */
  function verdict() {
    if (problem.kind === "count") return t(answer.right ? "train.counted" : "train.miscounted", { n: problem.answers.count });
    if (answer.right) return t("train.right");
    return t("train.wrong", { n: problem.answers[answer.edge], better: edgeWords(record.game, bestEdge()) });
  }

  return { open, leave, render };
}
