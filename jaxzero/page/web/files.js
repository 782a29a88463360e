/** Loading, saving, copying, sharing and naming a game. */

import { api } from "./api.js";
import { importGames } from "./archive.js";
import { download, find, html } from "./dom.js";
import { PICTURES } from "./pictures.js";
import { t } from "./i18n.js";
import { say } from "./notice.js";
import { endOf, resultOf } from "./play.js";
import { MAX_NAME, toFragment } from "./record.js";
import { remember } from "./settings.js";

const MAX_TEXT = 2 ** 20; // bytes; the server accepts no longer game
const MAX_ARCHIVE = 5e6; // bytes of exported games
const FORMATS = {
  json: { ending: "json" },
  ccgc: { ending: "ccgc.json", holds: ({ rows, cols, start }) => rows === 5 && cols === 5 && !start.length },
  text: { ending: "txt", holds: ({ start }) => !start.length },
  ...PICTURES,
}; // by id; the server writes those without `make`

/** Create the file tools. `whoPlays(player)` returns the name of a side for files and links. */
export function createFiles({ record, table, whoPlays, notice, onLoad, onName }) {
  /** Offer the formats that can hold the game. */
  function showFormats() {
    const select = find("#format");
    const chosen = select.value;
    const ids = Object.keys(FORMATS).filter((id) => FORMATS[id].holds?.(record.root) ?? true);
    select.replaceChildren(...ids.map((id) => html("option", { value: id, selected: id === chosen }, t(`format.${id}`))));
  }

  function show() {
    showFormats();
    const texts = { "name-0": whoPlays(0), "name-1": whoPlays(1), "game-title": record.root.title };
    for (const [id, text = ""] of Object.entries(texts)) {
      const field = find(`#${id}`);
      if (field !== document.activeElement) field.value = text;
    }
  }

  /** Take the names and the title. A person against the computer keeps the name for other games. */
  function takeNames({ target }) {
    const [first, second, title] = ["name-0", "name-1", "game-title"].map((id) => find(`#${id}`).value.trim());
    record.root.title = title;
    if (target.id !== "game-title") {
      const person = table.seats.findIndex(({ kind }) => kind === "person");
      if (table.seats[1 - person]?.kind === "engine") remember({ name: [first, second][person] });
      else table.names = first || second ? [first, second] : [];
    }
    onName();
  }

  async function load(file) {
    if (file.size > MAX_ARCHIVE) return notice.tell(() => t("files.tooLong"));
    await read(await file.text());
  }

  /** Load the contents of a text: exported games, a link to a game, or a record of a game. */
  async function read(text) {
    notice.moveOn();
    const imported = importGames(text);
    if (imported !== null) return say(t("games.imported", { n: imported }));
    if (new Blob([text]).size > MAX_TEXT) return notice.tell(() => t("files.tooLong"));
    const link = /^\S+(#g=\S+)$/.exec(text.trim());
    if (link) {
      if (location.hash === link[1]) dispatchEvent(new Event("hashchange")); // the browser reports no equal address
      location.hash = link[1];
      return;
    }
    const key = record.key();
    try {
      const { names, result, ...game } = await api.read(text);
      onLoad({ ...game, title: game.title.slice(0, MAX_NAME) }, { names: names.map((name) => name.slice(0, MAX_NAME)), ...endOf(result) });
      say(t("files.loaded", { rows: game.rows, cols: game.cols, moves: game.moves.length }));
    } catch (error) {
      // Retry only while the position is the same: a person who has moved on wants no other game.
      notice.fail("read", error, () => record.key() === key && read(text));
    }
  }

  /** Give the game in the chosen format, a text or a Blob, and the format to `use`. A failure is not repeated: the person may have moved on. */
  async function write(use) {
    notice.moveOn();
    const format = find("#format").value;
    const facts = { names: [0, 1].map(whoPlays), result: resultOf(table) };
    try {
      await use(await (FORMATS[format].make?.(record) ?? api.write({ ...withLines(record.root), ...facts }, format).then(({ text }) => text)), format);
    } catch (error) {
      notice.fail("write", error, null);
    }
  }

  function fileName(format) {
    const { rows, cols } = record.game;
    return `dots-and-boxes-${rows}x${cols}.${FORMATS[format].ending}`;
  }

  const save = () => write((content, format) => download(content, FORMATS[format].type ?? "text/plain", fileName(format)));
  const copy = () => write((content) => toClipboard(content, "files.copied", "files.noClipboard"));

  async function share() {
    const fragment = toFragment(record.game, record.at, [0, 1].map(whoPlays), record.inVariation ? "" : resultOf(table));
    history.replaceState(null, "", `#${fragment}`);
    await toClipboard(location.href, "files.shared", "files.link");
  }

  async function toClipboard(content, done, refused) {
    try {
      if (typeof content === "string") await navigator.clipboard.writeText(content);
      else await navigator.clipboard.write([new ClipboardItem({ [content.type]: content })]);
      say(t(done));
    } catch {
      say(t(refused));
    }
  }

  /** Load what a drop or a paste brings: a file, else a text. */
  function take(data) {
    const [file] = data.files;
    if (file) load(file);
    else read(data.getData("text/plain"));
  }

  function acceptDrops() {
    let isOwn = false; // a part of this page is dragged
    const hasGame = ({ dataTransfer, target }) =>
      !isOwn && !target.closest?.("input, textarea") && ["Files", "text/plain"].some((kind) => dataTransfer?.types.includes(kind));
    document.addEventListener("dragstart", () => (isOwn = true));
    document.addEventListener("dragend", () => (isOwn = false));
    document.addEventListener("dragover", (event) => hasGame(event) && event.preventDefault());
    document.addEventListener("drop", (event) => {
      if (!hasGame(event)) return;
      event.preventDefault();
      take(event.dataTransfer);
    });
  }

  function acceptPastes() {
    document.addEventListener("paste", (event) => {
      if (event.target.closest?.("input, textarea") || find("dialog[open]")) return;
      const { clipboardData: data } = event;
      if (!data.files.length && !data.getData("text/plain").trim()) return;
      event.preventDefault();
      take(data);
    });
  }

  find("#open-file").addEventListener("click", () => find("#file").click());
  find("#file").addEventListener("change", ({ target }) => {
    if (target.files.length) load(target.files[0]);
    target.value = "";
  });
  for (const id of ["name-0", "name-1", "game-title"]) find(`#${id}`).addEventListener("input", takeNames);
  find("#save").addEventListener("click", save);
  find("#copy").addEventListener("click", copy);
  find("#share").addEventListener("click", share);
  acceptDrops();
  acceptPastes();
  return { show };
}

/** Return a game for the server, without the fields that only the page uses (`joined`, `setUp`). */
function withLines({ joined, setUp, variations = [], comments = {}, ...line }) {
  return { ...line, comments, variations: variations.map(withLines) };
}
