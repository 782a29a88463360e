/** What the page remembers between visits. */

import { CLOCKS } from "./clock.js";
import { isFlag, isLevel, isShowable, isText, listOf, mapOf, oneOf, orNull, within } from "./kinds.js";
import { MAX_NAME } from "./record.js";
import { LARGEST_SIDE } from "./rules.js";

const KEY = "jaxzero"; // other keys of the page begin with it
const isRating = within(-1e4, 1e4);

/** Each setting with its default and its kind. */
const SETTINGS = {
  language: ["", oneOf("", "en", "zh")], // "": the browser's
  visited: [false, isFlag],
  chainsTold: [false, isFlag], // the page has explained why one click drew several edges
  teaching: [false, isFlag],
  analysis: [false, isFlag],
  chainsShown: [true, isFlag],
  everyEdge: [false, isFlag], // the analysis marks all edges, not only the best and the costly ones
  sound: [false, isFlag],
  speed: [3, within(1, 5)],
  usualWait: [60, within(0, 1e6)], // seconds of the last long wait for the server
  name: ["", isText(MAX_NAME)], // of the person, for files and links
  ratings: [{}, mapOf(isRating)], // of the person from games against levels, by the size of the board
  rating: [1000, isRating], // of the person on boards of other sizes
  grade: [0, within(0, 2)], // of the problems: 0 easy, 1 medium, 2 hard
  streak: [0, within(0, 1e6)], // problems solved in a row
  counted: ["", isText(MAX_NAME)], // the address of the last problem that counted
  table: [null, orNull(isShowable)], // the game on the table, see play.js
  lessons: [[], listOf(isText(MAX_NAME))], // names of lessons that are done
};

const SETUP = {
  rows: [3, within(1, LARGEST_SIDE)],
  cols: [3, within(1, LARGEST_SIDE)],
  mode: ["engine", oneOf("engine", "people", "watch")],
  starts: ["you", oneOf("you", "engine", "random")],
  levels: [["0", "3"], listOf(isLevel, 2)],
  adapts: [false, isFlag],
  clock: ["none", oneOf(...CLOCKS)],
};

let isRefused = false; // the storage is full, or a private window has none

/** Return the fields that are right, else their defaults. */
function checked(fields, found) {
  return Object.fromEntries(Object.entries(fields).map(([name, [value, isRight]]) => [name, isRight(found?.[name]) ? found[name] : value]));
}

/** Return the data stored under a key, as text if it is no JSON, or null. */
export function read(key, storage = "localStorage") {
  let text = null;
  try {
    text = window[storage].getItem(key);
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Return the stored settings, which other tabs may have changed. Without storage, return the settings of this page. */
export function stored() {
  if (isRefused) return { ...settings };
  const found = read(KEY);
  return { ...checked(SETTINGS, found), setup: checked(SETUP, found?.setup) };
}

export const settings = stored();
const own = read(KEY, "sessionStorage"); // the table that this tab has stored for itself; other tabs do not change it
if (isShowable(own)) settings.table = own;

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

/** Give settings their defaults. */
export function reset(...names) {
  remember(Object.fromEntries(names.map((name) => [name, SETTINGS[name][0]])));
}

/** Delete everything that the page has stored. */
export function clearStorage() {
  for (const storage of [localStorage, sessionStorage]) {
    for (const key of Object.keys(storage).filter((name) => name.startsWith(KEY))) storage.removeItem(key);
  }
}
