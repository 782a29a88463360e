/** The dialog for a new game, or for playing on from a position with other players. */

import { CLOCKS } from "./clock.js";
import { openDialog, segments, switchOf } from "./dialogs.js";
import { find, html } from "./dom.js";
import { t } from "./i18n.js";
import { levelName } from "./play.js";
import { isMeasured, ownRating, ratingOf } from "./rating.js";
import { LARGEST_SIDE, SMALLEST_SIDE } from "./rules.js";
import { remember, settings } from "./settings.js";

const LEVELS = [...Array(9).keys()].map(String); // as the server numbers them

/** Open the dialog for a new game. With `here`, its initial choices, the dialog is for playing on from the position shown. */
export function openNewGame(onStart, here = null) {
  const setup = { ...structuredClone(settings.setup), ...here };
  const form = html("form", { class: "dialog-body", method: "dialog", onsubmit: start });

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
      !here && boardChoice(setup, render),
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
    const slider = (seat, label) => levelSlider(t(label), setup, seat);
    if (setup.mode === "people") return [];
    if (setup.mode === "engine") return [adaptsChoice(), !setup.adapts && slider(0, "new.level")];
    return [slider(0, "new.levelFirst"), slider(1, "new.levelSecond")];
  }

  function adaptsChoice() {
    const set = (on) => {
      setup.adapts = on;
      render('[data-testid="adapts"]');
    };
    return switchOf("adapts", setup.adapts, set, { n: ownRating(setup) });
  }

  render();
  const dialog = openDialog(here ? "here" : "new", form);
}

/** Return the choice of the rows and columns. `onChoice(selector)` is called with the changed field. */
function boardChoice(setup, onChoice) {
  const sides = Array.from({ length: LARGEST_SIDE - SMALLEST_SIDE + 1 }, (_, index) => index + SMALLEST_SIDE);
  const choice = (name) => {
    setup[name] = Math.max(SMALLEST_SIDE, setup[name]);
    const options = sides.map((side) => html("option", { value: side, selected: side === setup[name] }, String(side)));
    const choose = ({ target }) => {
      setup[name] = Number(target.value);
      onChoice(`[data-testid="${name}"]`); // ratings depend on the size
    };
    return html("select", { onchange: choose, "aria-label": t(`new.${name}`), "data-testid": name }, options);
  };
  return html("fieldset", {}, html("legend", {}, t("new.size")), choice("rows"), " × ", choice("cols"));
}

/** Return the choice of the level of a seat, `levels[seat]` of the setup. */
function levelSlider(label, { levels, ...board }, seat) {
  const name = html("strong", {});
  const note = html("small", { class: "muted" });
  const range = html("input", { type: "range", min: 0, max: LEVELS.length - 1, step: 1, value: levels[seat], "aria-label": label, "data-testid": `level-${seat}` });
  const show = () => {
    const rating = ratingOf(levels[seat]);
    name.textContent = rating === undefined || !isMeasured(board) ? levelName(levels[seat]) : t("rating.level", { name: levelName(levels[seat]), n: rating });
    note.textContent = t(`level.${levels[seat]}.note`);
    range.setAttribute("aria-valuetext", name.textContent);
  };
  range.addEventListener("input", () => {
    levels[seat] = range.value;
    show();
  });
  show();
  const ends = [LEVELS[0], LEVELS.at(-1)].map((id) => html("span", {}, levelName(id)));
  return html("div", {}, html("span", { class: "label" }, label, " · ", name), range, html("div", { class: "ends muted", "aria-hidden": "true" }, ends), note);
}

/** Return the initial choices of the dialog for playing on: a person plays the side to move against the engine. */
export function setupHere(seats, mover, { rows, cols }) {
  const engines = seats.filter(({ kind }) => kind === "engine");
  const levels = settings.setup.levels.map((level, number) => engines[number]?.level ?? level);
  return { rows, cols, mode: "engine", starts: mover === 1 ? "engine" : "you", levels, adapts: false };
}
