/** The archive of the last finished games, stored in this browser, and the list of games to open, practise or export. */

import { button, download, html } from "./dom.js";
import { openDialog } from "./dialogs.js";
import { isolated, t } from "./i18n.js";
import { levelName } from "./play.js";
import { keyOf } from "./record.js";
import { isPossible, replay } from "./rules.js";
import { stored } from "./settings.js";

const KEY = "jaxzero-games";
const MAX_GAMES = 100;
export const MAX_NAME = 100; // letters, as in the fields of the names

let unstored = null; // the games, if the browser refuses to store them

function archived() {
  if (unstored) return unstored;
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return []; // storage is refused, or the data is not ours
  }
}

/** Add a table to the archive, or merge it into the entry with the same id. The archive drops the oldest games. */
export function addToArchive(table) {
  const all = archived();
  const old = all.find(({ id }) => id === table.id);
  const entry = { ...old, ...table };
  if (JSON.stringify(entry) === JSON.stringify(old)) return;
  const others = all.filter((each) => each !== old);
  let games = (unstored = [entry, ...others].sort((one, other) => other.date - one.date).slice(0, MAX_GAMES));
  while (games.length) {
    try {
      localStorage.setItem(KEY, JSON.stringify(games));
      return void (unstored = null);
    } catch {
      games = games.slice(0, -1); // the storage is full, or refused
    }
  }
}

/** Return whether the archive has other moves under the id of a table. Such an entry must not be replaced. */
export function isOther({ id, game }) {
  const old = archived().find((table) => table.id === id);
  return old !== undefined && keyOf(old.game) !== keyOf(game);
}

/** Add the games of an exported archive. Returns the number of those that are new and kept, or null if the text is no archive. */
export function importGames(text) {
  try {
    const games = JSON.parse(text);
    if (!games.length || !games.every(isArchivable)) return null;
    const ids = () => new Set(archived().map(({ id }) => id));
    const before = ids();
    games.forEach(addToArchive);
    return [...ids()].filter((id) => !before.has(id)).length;
  } catch {
    return null; // another format
  }
}

/** Return whether a table holds a possible game and two valid seats. */
export function isPlayable(table) {
  try {
    const isSeat = ({ kind, level }) => kind === "person" || (kind === "engine" && /^[0-8]$/.test(level));
    return isPossible(table.game) && table.seats.length === 2 && table.seats.every(isSeat);
  } catch {
    return false; // nothing, damaged, or stored by another version of this page
  }
}

function isArchivable(table) {
  const { id, date, names = [], slips = [] } = table;
  const isName = (name) => typeof name === "string" && name.length <= MAX_NAME;
  return id && Number.isFinite(date) && [...names, table.game.title ?? ""].every(isName) && isPlayable(table) && slips.every(({ player }) => table.seats[player]);
}

/** Add the result of a review, {accuracy, slips}, to a game of the archive. */
export function addReview(id, found) {
  const table = archived().find((each) => each.id === id);
  if (table) addToArchive({ ...table, ...found });
}

/** Return the mistakes of persons in all games. `table` of each mistake is its game. */
export function archivedSlips() {
  const slipsOf = ({ slips = [], ...table }) =>
    slips.filter(({ player }) => table.seats[player].kind === "person").map((slip) => ({ ...slip, table }));
  return archived().flatMap(slipsOf);
}

/** Open the list of games. `onOpen(table)` opens a game; `onPractise()` starts a practice of all mistakes. */
export function openArchive(onOpen, onPractise) {
  const games = [...stored().aside.toReversed(), ...archived()];
  const open = (table) => () => {
    dialog.close();
    onOpen(table);
  };
  const practise = () => {
    dialog.close();
    onPractise();
  };
  const save = () => download(JSON.stringify(games, null, 1), "application/json", "dots-and-boxes-games.json");
  const foot = html(
    "div",
    { class: "dialog-foot" },
    button("export-games", t("games.export"), save, { disabled: !games.length }),
    button("practise-games", t("games.practise"), practise, { class: "primary", disabled: !archivedSlips().length }),
  );
  const list = games.map((table) => html("li", {}, button("archived", entry(table), open(table))));
  const body = games.length ? html("ol", { class: "games" }, list) : html("p", { class: "muted" }, t("games.none"));
  const dialog = openDialog("games", html("div", { class: "dialog-body" }, html("p", { class: "muted" }, t("games.note")), body, foot));
}

function entry({ game, seats, names = [], date, flagged, resigned, accuracy }) {
  const engine = seats.find(({ kind }) => kind === "engine");
  const person = seats.findIndex(({ kind }) => kind === "person");
  const position = replay(game);
  const sides = engine && person === 1 ? [1, 0] : [0, 1]; // a person's own boxes first
  const score = sides.map((side) => position.score[side]).join(" : ");
  const note = flagged !== undefined ? t(resigned ? "games.resigned" : "games.time") : position.over ? "" : t("games.unfinished");
  const people = ["first", "second"].map((side, player) => (names[player] ? isolated(names[player]) : t(`name.${side}`)));
  const who = names.some(Boolean) ? people.join(" – ") : engine ? levelName(engine.level) : t("new.mode.people");
  const share = accuracy?.[Math.max(0, person)]?.all;
  return [
    html("span", { class: "when" }, new Date(date).toLocaleString([], { dateStyle: "short", timeStyle: "short" })),
    html("span", { class: "who" }, `${game.rows} × ${game.cols} · ${who}`),
    html("strong", {}, [engine && person >= 0 ? t("name.you") : "", score, note].join(" ")),
    html("span", { class: "muted" }, share === undefined || share === null ? "" : t("games.accuracy", { n: share })),
  ];
}
