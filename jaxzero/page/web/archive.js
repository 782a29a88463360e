/** The archive of the last games, stored in this browser, and the list of games to open, practise, delete or export. */

import { button, download, html, icon } from "./dom.js";
import { confirm, openDialog } from "./dialogs.js";
import { dateWords, isolated, t } from "./i18n.js";
import { isShowable } from "./kinds.js";
import { levelName } from "./play.js";
import { keyOf } from "./record.js";
import { replay } from "./rules.js";
import { read } from "./settings.js";

const KEY = "jaxzero-games";
const DAMAGED = "jaxzero-damaged";
const MAX_GAMES = 100;

let unstored = null; // the games, if the browser refuses to store them

function archived() {
  return unstored ?? [read(KEY) ?? []].flat().filter(isShowable);
}

/** Store games, the newest first. The archive drops the oldest games. */
function store(all) {
  let games = (unstored = all.sort((one, other) => other.date - one.date).slice(0, MAX_GAMES));
  for (;;) {
    try {
      localStorage.setItem(KEY, JSON.stringify(games));
      return void (unstored = null);
    } catch {
      if (!games.length) return; // the storage is refused
      games = games.slice(0, -1); // or full
    }
  }
}

/** Add a table to the archive, or merge it into the entry with the same id. */
export function addToArchive(table) {
  const all = archived();
  const old = all.find(({ id }) => id === table.id);
  const entry = { ...old, ...table };
  if (JSON.stringify(entry) !== JSON.stringify(old)) store([entry, ...all.filter((each) => each !== old)]);
}

/** Delete a game, by default all. */
export function removeFromArchive(id = null) {
  store(archived().filter((table) => id !== null && table.id !== id));
}

export const isEnded = ({ game, flagged }) => flagged !== undefined || replay(game).over;

/** Return whether the archive has other moves under the id of a table. Such an entry must not be replaced. */
export function isOther({ id, game }) {
  const old = archived().find((table) => table.id === id);
  return old !== undefined && keyOf(old.game) !== keyOf(game);
}

/** Keep stored games that cannot be shown under another key; archive the unfinished games of earlier versions, `aside`. */
export function setDamagedAside() {
  const { table, aside } = read("jaxzero") ?? {};
  const games = [read(KEY) ?? [], aside ?? []].flat();
  const damaged = [games, table ?? [], read("jaxzero", "sessionStorage") ?? []].flat().filter((each) => !isShowable(each));
  try {
    if (damaged.length) localStorage.setItem(DAMAGED, JSON.stringify([read(DAMAGED) ?? [], damaged].flat()));
    if (damaged.length || aside?.length) store(games.filter(isShowable));
  } catch {
    // The storage is refused or full.
  }
}

/** Add the games of an exported archive. Returns the number of those that are new and kept, or null if the text is no archive. */
export function importGames(text) {
  try {
    const games = JSON.parse(text);
    if (!games.length || !games.every(isShowable)) return null;
    const ids = () => new Set(archived().map(({ id }) => id));
    const before = ids();
    games.forEach(addToArchive);
    return [...ids()].filter((id) => !before.has(id)).length;
  } catch {
    return null; // another format
  }
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

/** Open the list of games. `onOpen(table)` opens a game, `onPractise()` starts a practice of all mistakes, `onDelete(id)` deletes a game. */
export function openArchive(onOpen, onPractise, onDelete) {
  const games = archived();
  const then = (action) => () => {
    dialog.close();
    action();
  };
  const remove = ({ id }) => () => confirm("forget", () => (onDelete(id), openArchive(onOpen, onPractise, onDelete)), { what: t("forget.game") });
  const save = () => download(JSON.stringify(games, null, 1), "application/json", "dots-and-boxes-games.json");
  const foot = html(
    "div",
    { class: "dialog-foot" },
    button("export-games", t("games.export"), save, { disabled: !games.length }),
    button("practise-games", t("games.practise"), then(onPractise), { class: "primary", disabled: !archivedSlips().length }),
  );
  const list = games.map((table) =>
    html(
      "li",
      {},
      button("archived", entry(table), then(() => onOpen(table))),
      button("forget-game", icon("close"), remove(table), { class: "quiet", "aria-label": t("forget.game") }),
    ),
  );
  const body = games.length ? html("ol", { class: "games" }, list) : html("p", { class: "muted" }, t("games.none"));
  const dialog = openDialog("games", html("div", { class: "dialog-body" }, html("p", { class: "muted" }, t("games.note")), body, foot));
}

function entry(table) {
  const { game, seats, names = [], date, flagged, resigned, accuracy } = table;
  const engine = seats.find(({ kind }) => kind === "engine");
  const person = seats.findIndex(({ kind }) => kind === "person");
  const position = replay(game);
  const sides = engine && person === 1 ? [1, 0] : [0, 1]; // a person's own boxes first
  const score = sides.map((side) => position.score[side]).join(" : ");
  const note = !isEnded(table) ? t("games.unfinished") : flagged === undefined ? "" : t(resigned ? "games.resigned" : "games.time");
  const people = ["first", "second"].map((side, player) => (names[player] ? isolated(names[player]) : t(`name.${side}`)));
  const who = names.some(Boolean) ? people.join(" – ") : engine ? levelName(engine.level) : t("new.mode.people");
  const share = accuracy?.[Math.max(0, person)]?.all;
  return [
    html("span", { class: "when" }, dateWords(date)),
    html("span", { class: "who" }, `${game.rows} × ${game.cols} · ${who}`),
    html("strong", {}, [engine && person >= 0 ? t("name.you") : "", score, note].join(" ")),
    html("span", { class: "muted" }, share === undefined || share === null ? "" : t("games.accuracy", { n: share })),
  ];
}
