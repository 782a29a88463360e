/** What the page remembers between visits. */

const KEY = "jaxzero";

const DEFAULTS = {
  language: "", // "": the browser's
  visited: false,
  chainsTold: false, // the page has explained why one click drew several edges
  teaching: false,
  analysis: false,
  chainsShown: true,
  everyEdge: false, // the analysis marks all edges, not only the best and the costly ones
  sound: false,
  speed: 3,
  usualWait: 60, // seconds of the last long wait for the server
  setup: { rows: 3, cols: 3, mode: "engine", starts: "you", levels: ["0", "3"], adapts: false, clock: "none" },
  ratings: {}, // of the person from games against levels, by the size of the board
  rating: 1000, // of the person on boards of other sizes
  grade: 0, // of the problems: 0 easy, 1 medium, 2 hard
  streak: 0, // problems solved in a row
  counted: "", // the address of the last problem that counted
  table: null, // the game on the table, see play.js
  aside: [], // unfinished games that other games have replaced; the newest is last
  lessons: [], // names of lessons that are done
};

let isRefused = false; // the storage is full, or a private window has none

/** Return whether a stored value has the type of its default. */
function hasItsType([name, value]) {
  const known = DEFAULTS[name];
  return typeof value === typeof known && Array.isArray(value) === Array.isArray(known);
}

/** Return the stored settings, which other tabs may have changed. Without storage, return the settings of this page. */
export function stored() {
  if (isRefused) return { ...settings };
  try {
    const found = Object.fromEntries(Object.entries(JSON.parse(localStorage.getItem(KEY)) ?? {}).filter(hasItsType));
    return { ...DEFAULTS, ...found, setup: { ...DEFAULTS.setup, ...found.setup } };
  } catch {
    return { ...DEFAULTS }; // nothing stored, storage refused, or not ours
  }
}

/** Return the table that this tab has stored for itself, or null. Other tabs do not change it. */
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
    // Store only the changes: another tab may have stored its game since.
    localStorage.setItem(KEY, JSON.stringify({ ...stored(), ...changes }));
    if (changes.table) sessionStorage.setItem(KEY, JSON.stringify(changes.table));
    isRefused = false;
  } catch {
    if (!isRefused) dispatchEvent(new Event("refused"));
    isRefused = true; // the settings last until the page closes
  }
}
