/** The trainer: endless problems by theme and grade, judged by the exact solver. */

import { api, isAbort } from "./api.js";
import { createBoard } from "./board.js";
import { segments } from "./dialogs.js";
import { button, find, findAll, html, refill, reveal, row } from "./dom.js";
import { busyWords, hasText, t } from "./i18n.js";
import { clear, drawChains, drawCosts, drawHint } from "./overlay.js";
import { createRecord } from "./record.js";
import { edgeName } from "./rules.js";
import { remember, settings, stored } from "./settings.js";

const THEMES = ["chains", "handback", "parity", "loops", "opening", "berlekamp"];
const GRADES = [0, 1, 2]; // easy, medium, hard
const MAX_COUNTED = 6; // the highest number on the buttons, unless the answer is higher

/** Return the problem that an address names, {theme, grade, seed}, or null. Without a grade and a seed, any problem of the theme is meant. */
export function problemAt(address) {
  const [, theme, grade, seed] = /^train-([a-z]+)(?:-([0-2])-(\d{1,9}))?$/.exec(address) ?? [];
  return THEMES.includes(theme) ? { theme, grade: Number(grade), seed: Number(seed) } : null;
}

/** Return the list of themes. */
export function themeList() {
  return html(
    "section",
    { id: "themes" },
    html("h2", {}, t("train.title")),
    html("p", { class: "muted" }, t("train.lead")),
    html("ol", { class: "lesson-list themes" }, THEMES.map(themeEntry)),
  );
}

function themeEntry(theme) {
  const words = [html("strong", {}, t(`train.${theme}.title`)), html("span", { class: "muted" }, t(`train.${theme}.text`))];
  return html("li", {}, html("a", { href: `#train-${theme}`, "data-testid": `train-${theme}` }, html("span", {}, words)));
}

/** Return the page of a lesson or a problem: its text, the board below a line of status, the answer and what follows it. */
export function exercisePage(name, text, host, after) {
  const line = (part, style) => html("p", { class: style, id: `${name}-${part}`, "data-testid": `${name}-${part}` });
  const answer = line("answer", "answer");
  answer.setAttribute("role", "status");
  return html(
    "article",
    { class: "lesson" },
    html("div", { class: "text" }, text),
    html("div", { class: "practice" }, line("status", "status"), host),
    html("div", { class: "after" }, answer, after),
  );
}

export function createTrainer({ parent, notice }) {
  let wanted = null; // {theme, grade, seed}
  let problem = null; // the server's problem; null while it is requested
  let answer = null; // of the person: {edge or count, right}
  let record = null;
  let board = null;
  let request = null;

  const address = () => `train-${wanted.theme}-${wanted.grade}-${wanted.seed}`;

  /** Show a problem as `problemAt` returns it. */
  function open(newProblem) {
    wanted = newProblem;
    if (Number.isNaN(wanted.seed)) {
      wanted = { ...wanted, grade: settings.grade, seed: Math.floor(Math.random() * 1e9) };
      history.replaceState(null, "", `#${address()}`);
    }
    remember({ grade: wanted.grade }); // the next problem has the grade of a link
    ask();
  }

  async function ask() {
    leave();
    const { signal } = (request = new AbortController());
    problem = answer = null;
    render();
    let seconds = 0;
    const count = setInterval(() => (find("#train-question").textContent = busyWords("train.question.waiting", ++seconds)), 1000);
    try {
      problem = await api.problem(wanted, signal);
    } catch (error) {
      if (!isAbort(error) && !signal.aborted) notice.fail("problem", error, ask);
      return;
    } finally {
      clearInterval(count);
    }
    if (signal.aborted) return;
    record = createRecord(problem.game);
    render();
    if (find(".segments :focus", parent)) return; // the choice of the grade goes on
    if (problem.kind === "edge") board.focus();
    else find("#train-counts button").focus({ preventScroll: true });
  }

  function leave() {
    request?.abort();
    notice.settle("problem");
  }

  function render() {
    const host = html("div", { class: "board-host" });
    board = createBoard(host, { onEdge: press, prefix: "train-" });
    refill(parent, page(host));
    show();
  }

  function page(host) {
    const text = [
      html("h1", {}, t(`train.${wanted.theme}.title`)),
      segments("grade", t("train.grade"), GRADES.map((grade) => [grade, t(`train.grade.${grade}`)]), wanted.grade, changeGrade),
      html("p", { id: "train-question", "data-testid": "train-question" }, t(`train.question.${problem?.kind ?? "waiting"}`)),
      problem?.kind === "count" ? countButtons() : null,
    ];
    const next = html("a", { class: "button", href: `#train-${wanted.theme}`, id: "train-next", "data-testid": "train-next" }, t("train.next"));
    return exercisePage("train", text, host, [row(next), html("a", { href: "#train" }, t("train.all"))]);
  }

  function countButtons() {
    const numbers = [...Array(Math.max(MAX_COUNTED, problem.answers.count) + 1).keys()];
    const buttons = numbers.map((n) => button(`train-count-${n}`, String(n), () => count(n)));
    return html("div", { class: "row", id: "train-counts", role: "group", "aria-label": t("train.question.count") }, buttons);
  }

  function changeGrade(grade) {
    remember({ grade });
    location.hash = `#train-${wanted.theme}`;
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
    answer = given;
    const { streak, counted } = stored(); // another tab may have trained too
    if (counted !== address()) remember({ streak: given.right ? streak + 1 : 0, counted: address() }); // a problem counts once
    show();
    find("#train-next").focus({ preventScroll: true });
    reveal(find(".lesson .after", parent));
  }

  function show() {
    find("#train-status").textContent = t("train.streak", { n: settings.streak });
    find("#train-question").classList.toggle("busy", !problem);
    find("#train-next").classList.toggle("primary", Boolean(answer));
    if (!problem) return;
    const { game, position } = record;
    const last = answer?.edge === undefined ? [] : [answer.edge];
    board.show(game, position, { last, enabled: !answer && problem.kind === "edge" });
    clear(board.layers());
    if (answer) showAnswer();
  }

  function showAnswer() {
    const element = find("#train-answer");
    element.className = `answer ${answer.right ? "good" : "bad"}`;
    const reason = `train.reason.${problem.reason}`; // early in a game no reason is short and true
    element.textContent = hasText(reason) ? t("train.answer", { verdict: verdict(), reason: t(reason) }) : verdict();
    for (const each of findAll("#train-counts button")) each.disabled = true;
    const { game, position } = record;
    if (problem.kind === "count") return drawChains(board.layers().under, game, position.drawn, problem.chains);
    const others = Object.entries(problem.answers).filter(([edge]) => Number(edge) !== answer.edge);
    drawCosts(board.layers().costs, game, others.map(([edge, lost]) => ({ edge: Number(edge), lost })));
    if (!answer.right) drawHint(board.layers().marks, game, bestEdge(), 0);
  }

  function bestEdge() {
    return Number(Object.keys(problem.answers).find((edge) => problem.answers[edge] === 0));
  }

  /** Return a text that tells whether the answer is right and, if not, the right one. */
  function verdict() {
    if (problem.kind === "count") return t(answer.right ? "train.counted" : "train.miscounted", { n: problem.answers.count });
    if (answer.right) return t("train.right");
    return t("train.wrong", { n: problem.answers[answer.edge], better: edgeName(record.game, bestEdge()) });
  }

  return { open, leave, render };
}
