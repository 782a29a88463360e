/** The dialog for a new game, or for playing on from a position with other players. */

import { CLOCKS } from "./clock.js";
import { openDialog, segments, switchOf } from "./dialogs.js";
import { find, html } from "./dom.js";
import { hasText, t } from "./i18n.js";
import { levelName } from "./play.js";
import { LARGEST_SIDE, SMALLEST_SIDE } from "./rules.js";
import { remember, settings } from "./settings.js";

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
      !here && boardChoice(setup),
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

/** Return the choice of the rows and columns. */
function boardChoice(setup) {
  const sides = Array.from({ length: LARGEST_SIDE - SMALLEST_SIDE + 1 }, (_, index) => index + SMALLEST_SIDE);
  const choice = (name) => {
    setup[name] = Math.max(SMALLEST_SIDE, setup[name]);
    const options = sides.map((side) => html("option", { value: side, selected: side === setup[name] }, String(side)));
    const choose = ({ target }) => (setup[name] = Number(target.value));
    return html("select", { onchange: choose, "aria-label": t(`new.${name}`), "data-testid": name }, options);
  };
  return html("fieldset", {}, html("legend", {}, t("new.size")), choice("rows"), " × ", choice("cols"));
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
