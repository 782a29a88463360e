/** The keyboard shortcuts and the wheel. The board itself listens to the arrows and to Enter. */

const KEYS = {
  u: "undo",
  r: "redo",
  h: "hint",
  l: "letMove",
  o: "players",
  a: "analysis",
  m: "mistake",
  n: "newGame",
  p: "pause",
  Home: "first",
  End: "last",
  ArrowLeft: "stepBack",
  ArrowRight: "stepForward",
  Escape: "unmark",
  "?": "help",
};

const TYPING = "input, select, textarea";

/** Return what a key means: its Latin letter, or the one in its place where another script is typed. */
function nameOf({ key, code }) {
  if (/^[\x20-\x7f]$/.test(key)) return key.toLowerCase();
  if (/^Key[A-Z]$/.test(code)) return code.slice(3).toLowerCase();
  return key;
}

/** Call the action of a key unless a dialog is open or a field has the focus; an action may decline. */
export function listenToKeys(actions, onTable) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || event.target.closest(TYPING)) return;
    const name = nameOf(event);
    const action = (onTable() || name === "?") && actions[KEYS[name]];
    if (action && action() !== false);
    else if (event.key.startsWith("Arrow") && event.target.matches("body, .toolbar button") && onTable()) actions.focusBoard();
    else return;
    event.preventDefault();
  });
}

const WHEEL_STEP = 60; // pixels of the wheel for one ply

/** Call `step(way)` as the wheel turns over some parts, where `mayStep(way)`: 1 down, -1 up. */
export function listenToWheel(parts, mayStep, step) {
  let turned = 0; // pixels that have not made a step yet

  function onWheel(event) {
    const way = Math.sign(event.deltaY);
    if (!way || event.ctrlKey || !mayStep(way)) return;
    event.preventDefault();
    if (way !== Math.sign(turned)) turned = 0;
    turned += event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY : way * WHEEL_STEP;
    if (Math.abs(turned) < WHEEL_STEP) return;
    turned = 0;
    step(way);
  }

  for (const part of parts) document.querySelector(part).addEventListener("wheel", onWheel, { passive: false });
}
