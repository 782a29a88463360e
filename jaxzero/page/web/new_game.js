/** The dialog for a new game, or for playing on from a position with other players. */

import { CLOCKS } from "./clock.js";
import { openDialog, segments, switchOf } from "./dialogs.js";
import { find, html } from "./dom.js";
import { hasText, t } from "./i18n.js";
import { levelName } from "./play.js";
import { LARGEST_SIDE, SMALLEST_SIDE } from "./rules.js";
import { remember, settings } from "./settings.js";

const BOARDS = [2, 3, 4, 5, 6, 7].map((side) => ({ rows: side, cols: side })); // without a server

/**
 * Open the dialog for a new game. With `here`, its initial choices, the dialog is for playing on from the position shown.
 * `infoNow()` returns the server's info, or null until it is known. Returns a function that renders the dialog again, to be
 * called when the info arrives.
 */
export function openNewGame(infoNow, onStart, here = null) {
  const setup = { ...structuredClone(settings.setup), ...here };
  const form = html("form", { class: "dialog-body", method: "dialog", onsubmit: start, onkeydown: sendByEnter });

  function start() {
    if (!here) remember({ setup });
    dialog.addEventListener("close", () => onStart(setup), { once: true });
  }

  function choose(name) {
    return (value) => {
      setup[name] = value;
      render(`[name="${name}"]:checked`);
    };
  }

  function render(focus) {
    form.replaceChildren(...parts().filter(Boolean));
    if (focus) find(focus, form)?.focus();
  }

  function parts() {
    const words = (group, values) => values.map((value) => [value, t(`new.${group}${value}`)]);
    return [
      segments("mode", t("new.mode"), words("mode.", ["engine", "people", "watch"]), setup.mode, choose("mode")),
      !here && boardChoice(infoNow(), setup, render),
      setup.mode === "engine" && sideChoice(words),
      ...levelChoices(),
      !here && clockChoice(),
      html(
        "div",
        { class: "dialog-foot" },
        html("button", { type: "button", onclick: () => dialog.close() }, t("cancel")),
        html("button", { class: "primary", "data-testid": "start-game" }, t(here ? "here.start" : "new.start")),
      ),
    ];
  }

  function sideChoice(words) {
    if (here) return segments("starts", t("here.side"), [["you", t("name.first")], ["engine", t("name.second")]], setup.starts, choose("starts"));
    return segments("starts", t("new.starts"), words("starts.", ["you", "engine", "random"]), setup.starts, choose("starts"));
  }

  function clockChoice() {
    const clocks = CLOCKS.map((name) => [name, name === "none" ? t("new.clock.none") : name]);
    return segments("clock", t("new.clock"), clocks, setup.clock, choose("clock"));
  }

  function levelChoices() {
    const levels = infoNow()?.levels ?? [...Array(9).keys()].map((id) => ({ id: String(id) }));
    const set = (seat) => (id) => (setup.levels[seat] = id);
    const slider = (seat, label) => levelSlider(t(label), levels, setup.levels[seat], set(seat), `level-${seat}`);
    if (setup.mode === "people") return [];
    if (setup.mode === "engine") return [adaptsChoice(), !setup.adapts && slider(0, "new.level")];
    return [slider(0, "new.levelFirst"), slider(1, "new.levelSecond")];
  }

  function adaptsChoice() {
    const set = (on) => {
      setup.adapts = on;
      render('[data-testid="adapts"]');
    };
    return switchOf("adapts", setup.adapts, set);
  }

  render();
  const dialog = openDialog(here?.title ?? "new", form);
  return () => {
    const { testid } = form.contains(document.activeElement) ? document.activeElement.dataset : {};
    render(testid && `[data-testid="${testid}"]`);
  };
}

/** Let Enter on a closed list submit the form, as Enter on other fields does. */
function sendByEnter(event) {
  const { key, target, currentTarget } = event;
  if (key !== "Enter" || target.tagName !== "SELECT" || !CSS.supports("selector(:open)") || target.matches(":open")) return;
  event.preventDefault();
  currentTarget.requestSubmit();
}

function boardChoice(info, setup, render) {
  const boards = info?.boards ?? BOARDS;
  const name = ({ rows, cols }) => `${rows} × ${cols}`;
  const own = !boards.some(({ rows, cols }) => rows === setup.rows && cols === setup.cols);
  const option = (board) =>
    html("option", { value: `${board.rows}x${board.cols}`, selected: board.rows === setup.rows && board.cols === setup.cols }, name(board));
  const change = ({ target }) => {
    if (target.value === "own") setup.ownSize = true;
    else {
      [setup.rows, setup.cols] = target.value.split("x").map(Number);
      setup.ownSize = false;
    }
    render("#size");
  };
  const ownShown = own || setup.ownSize;
  const select = html(
    "select",
    { id: "size", onchange: change, "data-testid": "size" },
    html("optgroup", { label: t("new.trained") }, boards.map(option)),
    html("option", { value: "own", selected: ownShown }, t("new.own")),
  );
  const sides = ownShown ? ["rows", "cols"].map((side) => sideSlider(side, setup)) : [];
  return html("div", {}, html("label", { class: "label", for: "size" }, t("new.size")), select, html("div", { class: "sides" }, sides));
}

function sideSlider(side, setup) {
  const value = html("strong", {}, String(setup[side]));
  const input = ({ target }) => {
    setup[side] = Number(target.value);
    value.textContent = target.value;
  };
  const range = html("input", { type: "range", min: SMALLEST_SIDE, max: LARGEST_SIDE, step: 1, value: setup[side], oninput: input, "aria-label": t(`new.${side}`), "data-testid": `own-${side}` });
  return html("div", {}, html("span", { class: "label" }, t(`new.${side}`), " · ", value), range);
}

function levelSlider(label, levels, value, onChange, testid) {
  const index = Math.max(0, levels.findIndex(({ id }) => id === value));
  const name = html("strong", {});
  const note = html("small", { class: "muted" });
  const range = html("input", { type: "range", min: 0, max: levels.length - 1, step: 1, value: index, "aria-label": label, "data-testid": testid });
  const show = () => {
    const at = Number(range.value);
    const { id, rating } = levels[at];
    name.textContent = levelName(id) + (rating === undefined ? "" : ` · ${rating}`);
    note.textContent = hasText(`level.${id}.note`) ? t(`level.${id}.note`) : "";
    range.setAttribute("aria-valuetext", name.textContent);
  };
  range.addEventListener("input", () => {
    show();
    onChange(levels[Number(range.value)].id);
  });
  show();
  const ends = [levels[0], levels.at(-1)].map(({ id }) => html("span", {}, levelName(id)));
  return html("div", {}, html("span", { class: "label" }, label, " · ", name), range, html("div", { class: "ends muted", "aria-hidden": "true" }, ends), note);
}

/**
 * Return the initial choices of the dialog for playing on: the players at the table. In a review, a
 * person plays the side to move against the engine.
 */
export function setupHere(seats, mover, inReview) {
  const engines = seats.filter(({ kind }) => kind === "engine");
  const mode = inReview ? "engine" : ["people", "engine", "watch"][engines.length];
  const person = mode === "engine" && !inReview ? seats.findIndex(({ kind }) => kind === "person") : mover;
  const levels = settings.setup.levels.map((level, number) => engines[number]?.level ?? level);
  return { mode, starts: person === 1 ? "engine" : "you", levels, adapts: false, title: inReview ? "here" : "players" };
}
