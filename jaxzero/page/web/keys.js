/** The keyboard shortcuts. The board itself listens to the arrows and to Enter. */

import { openDialog } from "./dialogs.js";
import { html } from "./dom.js";
import { t } from "./i18n.js";

/** The shortcuts as [keys, words, actions by key]. */
const SHORTCUTS = [
  ["← ↑ → ↓", "keys.arrows", {}],
  ["Enter", "keys.enter", {}],
  ["← →", "keys.step", { ArrowLeft: "stepBack", ArrowRight: "stepForward" }],
  ["U / R", "keys.undo", { u: "undo", r: "redo" }],
  ["Home / End", "keys.ends", { Home: "first", End: "last" }],
  ["H", "hint", { h: "hint" }],
  ["L", "letMove", { l: "letMove" }],
  ["A", "analysis.title", { a: "analysis" }],
  ["M", "review.mistake", { m: "mistake" }],
  ["N", "new.title", { n: "newGame" }],
  ["P", "watch.pause", { p: "pause" }],
  ["?", "keys.title", { "?": "help" }],
];
const ACTIONS = Object.assign({ Escape: "unmark" }, ...SHORTCUTS.map(([, , actions]) => actions));

export function openShortcuts() {
  const rows = SHORTCUTS.flatMap(([keys, words]) => [html("dt", {}, html("kbd", {}, keys)), html("dd", {}, t(words))]);
  openDialog("keys", html("div", { class: "dialog-body" }, html("dl", { class: "keys" }, rows)));
}

const FIELDS = ":is(input, select, textarea):not(dialog *)"; // a closed dialog may keep the focus until the next frame
const SLIDING = /^(Arrow.*|Home|End)$/; // keys that a slider uses

/** Return the name of a key. With another script, it is the Latin letter at the same place on the keyboard. */
function nameOf({ key, code }) {
  if (/^[\x20-\x7f]$/.test(key)) return key.toLowerCase();
  if (/^Key[A-Z]$/.test(code)) return code.slice(3).toLowerCase();
  return key;
}

/** Call the action of a key unless a dialog is open or a field that uses the key has the focus. An action declines by returning false. */
export function listenToKeys(actions, onTable) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest(FIELDS);
    if (document.querySelector("dialog[open]") || (field && (field.type !== "range" || SLIDING.test(event.key)))) return;
    const name = nameOf(event);
    const action = (onTable() || name === "?") && actions[ACTIONS[name]];
    if (action && action() !== false);
    else if (event.key.startsWith("Arrow") && event.target.matches("body, .toolbar button") && onTable()) actions.focusBoard();
    else return;
    event.preventDefault();
  });
}
