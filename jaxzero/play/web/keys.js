/** The keyboard shortcuts. The board itself listens to the arrows and to Enter. */

const KEYS = {
  u: "undo",
  r: "redo",
  h: "hint",
  a: "analysis",
  m: "mistake",
  n: "newGame",
  p: "pause",
  Home: "first",
  End: "last",
  "?": "help",
};

const TYPING = "input, select, textarea";

/** Call the action of a key unless a dialog is open or a field has the focus. */
export function listenToKeys(actions, onTable) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || event.target.closest(TYPING)) return;
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.key.startsWith("Arrow") && event.target.matches("body, .toolbar button") && onTable()) actions.focusBoard();
    else if (KEYS[name] && (onTable() || name === "?")) actions[KEYS[name]]();
    else return;
    event.preventDefault();
  });
}
