/** The dialogs for a new game, the settings and the shortcuts. */

import { find, html, icon } from "./dom.js";
import { hasText, language, t } from "./i18n.js";
import { levelName } from "./play.js";
import { applyTheme, remember, settings } from "./settings.js";

/** Fill a dialog with a heading, a button that closes it and its parts. */
function fill(dialog, name, ...parts) {
  const close = html("button", { class: "quiet", type: "button", "aria-label": t("close"), onclick: () => dialog.close() }, icon("close"));
  dialog.replaceChildren(
    html("div", { class: "dialog-head" }, html("h2", { id: `${name}-title` }, t(`${name}.title`)), close),
    ...parts,
  );
  if (dialog.open) return;
  dialog.showModal();
  find("form :checked", dialog)?.focus(); // where Enter sends the form, not on the button that closes
}

/** Return a row of choices. `options` are [value, words]. */
function segments(name, legend, options, chosen, onChange) {
  const choice = ([value, words]) =>
    html(
      "label",
      {},
      html("input", { type: "radio", name, value, checked: value === chosen, onchange: () => onChange(value), "data-testid": `${name}-${value}` }),
      html("span", {}, words),
    );
  return html("fieldset", {}, html("legend", {}, legend), html("div", { class: "segments" }, options.map(choice)));
}

function levelSlider(label, levels, value, onChange, testid) {
  const index = Math.max(0, levels.findIndex(({ id }) => id === value));
  const name = html("strong", {});
  const note = html("small", { class: "muted" });
  const range = html("input", { type: "range", min: 0, max: levels.length - 1, step: 1, value: index, "aria-label": label, "data-testid": testid });
  const show = () => {
    const at = Number(range.value);
    name.textContent = levelName(levels[at].id);
    note.textContent = hasText(`level.${levels[at].id}.note`) ? t(`level.${levels[at].id}.note`) : "";
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

/** Open the dialog for a new game. `info` is the server's, or null as long as it is not known. */
export function openNewGame(info, onStart) {
  const dialog = find("#new-dialog");
  const setup = structuredClone(settings.setup);
  const form = html("form", { class: "dialog-body", method: "dialog", onsubmit: start, onkeydown: sendByEnter });

  function start() {
    remember({ setup });
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
      boardChoice(info, setup, render),
      setup.mode === "engine" &&
        segments("starts", t("new.starts"), words("starts.", ["you", "engine", "random"]), setup.starts, choose("starts")),
      ...levelChoices(),
      segments("variant", t("new.variant"), words("", ["american", "swedish", "icelandic"]), setup.variant, choose("variant")),
      html("p", { class: "muted" }, t(`new.${setup.variant}.note`)),
      komiChoice(),
      html(
        "div",
        { class: "dialog-foot" },
        html("button", { type: "button", onclick: () => dialog.close() }, t("cancel")),
        html("button", { class: "primary", "data-testid": "start-game" }, t("new.start")),
      ),
    ];
  }

  function levelChoices() {
    const levels = info?.levels ?? [...Array(9).keys()].map((id) => ({ id: String(id) }));
    const set = (seat) => (id) => (setup.levels[seat] = id);
    const slider = (seat, label) => levelSlider(t(label), levels, setup.levels[seat], set(seat), `level-${seat}`);
    if (setup.mode === "people") return [];
    if (setup.mode === "engine") return [slider(0, "new.level")];
    return [slider(0, "new.levelFirst"), slider(1, "new.levelSecond")];
  }

  function komiChoice() {
    const set = ({ target }) => (setup.komi = Number(target.value) || 0);
    const input = html("input", { type: "number", id: "komi", step: 0.5, min: -20, max: 20, value: setup.komi, oninput: set, "data-testid": "komi" });
    return html("div", {}, html("label", { class: "label", for: "komi" }, t("new.komi")), input);
  }

  render();
  fill(dialog, "new", form);
}

/** Let Enter send a form from a closed list too, as it does from other fields. */
function sendByEnter(event) {
  const { key, target, currentTarget } = event;
  if (key !== "Enter" || target.tagName !== "SELECT" || !CSS.supports("selector(:open)") || target.matches(":open")) return;
  event.preventDefault();
  currentTarget.requestSubmit();
}

function boardChoice(info, setup, render) {
  const boards = info?.boards ?? [{ rows: setup.rows, cols: setup.cols }];
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
  const sides = ownShown ? ["rows", "cols"].map((side) => sideSlider(side, setup, info)) : [];
  return html("div", {}, html("label", { class: "label", for: "size" }, t("new.size")), select, html("div", { class: "sides" }, sides));
}

function sideSlider(side, setup, info) {
  const { min, max } = info?.sizes ?? { min: 1, max: 7 };
  const value = html("strong", {}, String(setup[side]));
  const input = ({ target }) => {
    setup[side] = Number(target.value);
    value.textContent = target.value;
  };
  const range = html("input", { type: "range", min, max, step: 1, value: setup[side], oninput: input, "aria-label": t(`new.${side}`), "data-testid": `own-${side}` });
  return html("div", {}, html("span", { class: "label" }, t(`new.${side}`), " · ", value), range);
}

/** Open the settings. `onChange(name)` is called after each change. */
export function openSettings(info, onChange) {
  const dialog = find("#settings-dialog");
  const set = (name) => (value) => {
    remember({ [name]: value });
    applyTheme();
    onChange(name);
    if (name === "language") openSettings(info, onChange);
  };
  const teaching = html("input", { type: "checkbox", checked: settings.teaching, onchange: ({ target }) => set("teaching")(target.checked), "data-testid": "teaching" });
  const chains = ["off", "choice", "all"].map((value) => [value, t(`settings.chains.${value}`)]);
  const themes = ["system", "light", "dark"].map((value) => [value, t(`settings.theme.${value}`)]);
  const version = info && html("p", { class: "muted" }, t("settings.version", info));
  const body = html(
    "div",
    { class: "dialog-body" },
    html("label", { class: "switch" }, teaching, html("span", {}, t("settings.teaching"), html("small", {}, t("settings.teaching.note")))),
    segments("chains", t("settings.chains"), chains, settings.chains, set("chains")),
    html("p", { class: "muted" }, t("settings.chains.note")),
    segments("language", t("settings.language"), [["en", "English"], ["zh", "中文"]], language(), set("language")),
    segments("theme", t("settings.theme"), themes, settings.theme, set("theme")),
    version,
  );
  fill(dialog, "settings", body);
}

const KEYS = [
  ["← ↑ → ↓", "arrows"],
  ["Enter", "enter"],
  ["← →", "step"],
  ["U / R", "undo"],
  ["Home / End", "ends"],
  ["H", "hint"],
  ["A", "analysis"],
  ["M", "mistake"],
  ["N", "new"],
  ["P", "pause"],
  ["?", "help"],
];

export function openShortcuts() {
  const rows = KEYS.flatMap(([keys, name]) => [html("dt", {}, html("kbd", {}, keys)), html("dd", {}, t(`keys.${name}`))]);
  fill(find("#keys-dialog"), "keys", html("div", { class: "dialog-body" }, html("dl", { class: "keys" }, rows)));
}
