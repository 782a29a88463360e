/** The start page: the rules in pictures and lessons on a live board. */

import { createBoard, edgeWords } from "./board.js";
import { button, find, html, reveal, row } from "./dom.js";
import { hasText, t } from "./i18n.js";
import { bad, good, LESSONS } from "./lesson_data.js";
import { tell } from "./notice.js";
import { clear, drawHint } from "./overlay.js";
import { HERO, miniature, RULES } from "./pictures.js";
import { createRecord } from "./record.js";
import { boxesGiven, closedBy, simpleEdge } from "./rules.js";
import { remember, settings, stored } from "./settings.js";
import { exercisePage, themeList } from "./train.js";

const REPLY = 650; // ms before each move of the other side

export function createLessons({ parent }) {
  let number = null; // index of the lesson shown; null for the start page
  let record = null;
  let board = null;
  let verdict = null;
  let timer = 0;

  function open(newNumber) {
    number = newNumber;
    restart();
  }

  function restart() {
    clearTimeout(timer);
    verdict = null;
    if (number !== null) record = createRecord(LESSONS[number].game);
    render();
  }

  function render() {
    parent.replaceChildren(...(number === null ? startPage() : [lessonPage()]));
    if (number !== null) showBoard();
  }

  function startPage() {
    return [
      html(
        "section",
        { class: "hero" },
        html(
          "div",
          {},
          html("h1", {}, t("learn.title")),
          html("p", {}, t("learn.lead")),
          row(
            html("a", { class: "button primary", href: "#play", "data-testid": "play-now" }, t("learn.play")),
            html("a", { class: "button", href: "#lesson-1", "data-testid": "first-lesson" }, t("learn.first")),
          ),
        ),
        html("div", { class: "picture" }, miniature(HERO)),
      ),
      html("section", {}, html("h2", {}, t("learn.rules")), html("ol", { class: "rules" }, RULES.map(rule))),
      html("section", {}, html("h2", {}, t("learn.lessons")), html("ol", { class: "lesson-list" }, LESSONS.map(entry))),
      themeList(),
    ];
  }

  function rule(game, index) {
    return html(
      "li",
      {},
      miniature(game),
      html("h3", {}, `${index + 1}. ${t(`rule.${index + 1}.title`)}`),
      html("p", {}, t(`rule.${index + 1}.text`)),
    );
  }

  function entry({ id }, index) {
    const done = settings.lessons.includes(id);
    return html(
      "li",
      { class: done ? "done" : "" },
      html(
        "a",
        { href: `#lesson-${index + 1}`, "data-testid": `lesson-${index + 1}` },
        html("span", { class: "count", "aria-hidden": "true" }, done ? "✓" : String(index + 1)),
        html("span", {}, html("strong", {}, t(`lesson.${id}.title`)), done ? html("span", { class: "muted" }, t("learn.done")) : null),
      ),
    );
  }

  function lessonPage() {
    const { id } = LESSONS[number];
    const host = html("div", { class: "board-host" });
    board = createBoard(host, { onEdge: press, prefix: "lesson-" });
    const text = [
      html("p", { class: "muted" }, t("learn.count", { number: number + 1, all: LESSONS.length })),
      html("h1", {}, t(`lesson.${id}.title`)),
      html("p", {}, t(`lesson.${id}.text`)),
      html("div", { class: "task" }, html("strong", {}, t("learn.task")), html("p", {}, t(`lesson.${id}.task`))),
    ];
    const [href, words] = number + 1 < LESSONS.length ? [`#lesson-${number + 2}`, "learn.next"] : ["#play", "learn.toGame"];
    const next = html("a", { class: "button", href, id: "lesson-next", "data-testid": "lesson-next" }, t(words));
    const again = button("lesson-again", t("learn.again"), () => (restart(), board.focus()), { id: "lesson-again" });
    const tools = row(again, button("lesson-show", t("learn.show"), showSolution), next);
    return exercisePage("lesson", text, host, [tools, html("a", { href: "#learn" }, t("learn.all"))]);
  }

  const ended = () => verdict?.mood === "good" || verdict?.mood === "bad";
  const learnerMoves = () => !record.position.over && record.position.player === 0 && !ended();

  function press(edge) {
    if (!learnerMoves() || record.position.drawn[edge]) return;
    const judged = judge(edge);
    record.play([edge]);
    if (judged) verdict = judged;
    settle();
    clearTimeout(timer);
    timer = setTimeout(reply, REPLY);
  }

  /** Show the position. If the game is over without a verdict, the score decides, whoever made the last move. */
  function settle() {
    const [own, other] = record.position.score;
    if (record.position.over && !ended()) verdict = own > other ? good("good") : bad("lost", { own, other });
    if (verdict?.mood === "good") remember({ lessons: [...new Set([...stored().lessons, LESSONS[number].id])] });
    showBoard();
  }

  /** Judge a move of the learner before it is drawn. */
  function judge(edge) {
    const { game, position } = record;
    const own = position.plies.filter(({ player }) => player === 0);
    const closed = closedBy(game, position.drawn, edge).length;
    return LESSONS[number].judge({
      edge,
      closed,
      ply: position.plies.length,
      given: boxesGiven(game, position.drawn, edge),
      score: [position.score[0] + closed, position.score[1]],
      crossed: own.some((ply) => !ply.closed.length),
    });
  }

  /** If the lesson goes on, draw one edge for the other side, and repeat while it is to move. */
  function reply() {
    const stops = verdict?.mood === "bad" || (verdict?.mood === "good" && LESSONS[number].id !== "chain");
    if (stops || record.position.over || record.position.player === 0) return;
    record.play([simpleEdge(record.game, record.position.drawn)]);
    settle();
    timer = setTimeout(reply, REPLY);
  }

  function showSolution() {
    if (ended() || record.position.over) restart();
    if (!learnerMoves()) return; // it is the turn of the other side
    const { game, position } = record;
    const own = position.plies.filter(({ player }) => player === 0).length;
    const planned = LESSONS[number].solution[own];
    const edge = planned !== undefined && !position.drawn[planned] ? planned : simpleEdge(game, position.drawn);
    drawHint(board.layers().marks, game, edge, 0);
    tell(edgeWords(game, edge));
  }

  function showBoard() {
    const { game, position } = record;
    const last = position.plies.at(-1)?.edge;
    board.show(game, position, { last: last === undefined ? [] : [last], enabled: learnerMoves() });
    clear(board.layers());
    const [own, other] = position.score;
    find("#lesson-status").textContent = t("learn.score", { own, other });
    const answer = find("#lesson-answer");
    const key = `lesson.${LESSONS[number].id}.${verdict?.answer}`;
    const text = verdict ? t(hasText(key) ? key : `lesson.${verdict.answer}`, verdict.values) : "";
    if (answer.textContent !== text) {
      answer.textContent = text;
      if (text) reveal(find(".lesson .after", parent));
    }
    answer.className = `answer ${verdict?.mood ?? ""}`;
    find("#lesson-next").classList.toggle("primary", verdict?.mood === "good");
    find("#lesson-again").classList.toggle("primary", verdict?.mood === "bad");
  }

  function leave() {
    clearTimeout(timer);
  }

  return { open, leave, render, count: LESSONS.length };
}
