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

const TYPING = "input:not([type=range]), select, textarea";
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
    if (document.querySelector("dialog[open]") || event.target.closest(TYPING)) return;
    if (event.target.matches("[type=range]") && SLIDING.test(event.key)) return;
    const name = nameOf(event);
    const action = (onTable() || name === "?") && actions[KEYS[name]];
    if (action && action() !== false);
    else if (event.key.startsWith("Arrow") && event.target.matches("body, .toolbar button") && onTable()) actions.focusBoard();
    else return;
    event.preventDefault();
  });
}

const WHEEL_STEP = 60; // pixels of the wheel per ply

/** Call `step(way)` when the wheel turns over one of the parts and `mayStep(way)` is true; `way` is 1 down, -1 up. */
export function listenToWheel(parts, mayStep, step) {
  let turned = 0; // pixels turned since the last step

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
