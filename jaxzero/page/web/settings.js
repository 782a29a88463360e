/** What the page remembers between visits. */

const KEY = "jaxzero";

const DEFAULTS = {
  language: null, // null: the browser's
  theme: "system",
  visited: false,
  chains: "choice", // one click on a free chain: "off", "choice" or "all", see followChain
  chainsTold: false, // that one click takes more than one edge
  teaching: false,
  analysis: false,
  numbers: true,
  chainsShown: true,
  everyEdge: false, // the analysis marks all edges, not only the best and the costly ones
  ownersShown: false, // and who gets which box
  turn: 0, // quarter turns of the board, clockwise, after a flip
  flip: false,
  sound: false,
  speed: 3,
  setup: { rows: 5, cols: 5, mode: "engine", starts: "you", levels: ["3", "3"], adapts: false, variant: "american", komi: 0, clock: "none" },
  rating: 1000, // of the person, by games against levels
  training: { rating: 1000, solved: 0, tried: 0 }, // of the person, by problems
  effort: 20, // seconds of an analysis
  confirm: false, // a touch marks an edge, a second one draws it
  table: null, // the game on the table, see play.js
  aside: [], // unfinished games that others have replaced, likewise, the newest last
  lessons: [], // names of lessons that are done
};

let isRefused = false; // the storage is full, or a private window has none

/** Return what is stored now, also by other tabs; without storage what this page remembers. */
export function stored() {
  if (isRefused) return { ...settings };
  try {
    const found = JSON.parse(localStorage.getItem(KEY)) ?? {};
    return { ...DEFAULTS, ...found, setup: { ...DEFAULTS.setup, ...found.setup } };
  } catch {
    return { ...DEFAULTS }; // nothing stored, storage refused, or not ours
  }
}

/** Return the table that this tab stored, which another tab does not touch; else null. */
function ownTable() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY));
  } catch {
    return null;
  }
}

export const settings = stored();
settings.table = ownTable() ?? settings.table;

export function remember(changes) {
  Object.assign(settings, changes);
  try {
    // Another tab may have stored its game since: only what changes here is stored.
    localStorage.setItem(KEY, JSON.stringify({ ...stored(), ...changes }));
    if (changes.table) sessionStorage.setItem(KEY, JSON.stringify(changes.table));
    isRefused = false;
  } catch {
    isRefused = true; // the page then forgets when it closes
  }
}

export function applyTheme() {
  document.documentElement.dataset.theme = settings.theme;
}

/** Switch to the next of system, light and dark, and return it. */
export function nextTheme() {
  const order = ["system", "light", "dark"];
  remember({ theme: order[(order.indexOf(settings.theme) + 1) % order.length] });
  applyTheme();
  return settings.theme;
}
