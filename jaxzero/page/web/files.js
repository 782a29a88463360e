/** Loading, saving, copying, sharing and naming a game. */

import { api } from "./api.js";
import { importGames } from "./archive.js";
import { download, find, html } from "./dom.js";
import { PICTURES } from "./export_picture.js";
import { hasText, t } from "./i18n.js";
import { toFragment } from "./share.js";

const MOST_TEXT = 60000; // characters; the server accepts 64 KiB
const MOST_ARCHIVE = 5e6; // bytes of exported games
const ENDINGS = { json: "json", openspiel: "txt", ccgc: "ccgc.json" }; // else FORMAT.txt, as with `--save`

/** Create the file tools. `table` has the komi and the names; `nameOf(player)` returns the name of a side. */
export function createFiles({ record, table, nameOf, notice, say, onLoad, onName }) {
  let dragging = false; // a game is dragged out of this page; the page must not accept it as a drop
  let formats = ["json"]; // formats that the server can write

  function setFormats(all) {
    formats = all;
    showFormats();
  }

  /** Offer the formats that can hold the game shown. */
  function showFormats() {
    const select = find("#format");
    const possible = [...formats, ...Object.keys(PICTURES)].filter((id) => id !== "ccgc" || fitsCcgc(record.game));
    const label = (id) => (hasText(`format.${id}`) ? t(`format.${id}`) : id);
    const words = possible.map(label);
    if ([...select.options].map(({ text }) => text).join() === words.join()) return;
    const chosen = select.value;
    select.replaceChildren(...possible.map((id, index) => html("option", { value: id }, words[index])));
    if (possible.includes(chosen)) select.value = chosen;
  }

  /** Show the players' names and the title of the game in their fields. */
  function showNames() {
    const texts = { "name-0": table.names[0], "name-1": table.names[1], "game-title": record.root.title };
    for (const [id, text = ""] of Object.entries(texts)) {
      const field = find(`#${id}`);
      if (field !== document.activeElement) field.value = text;
    }
  }

  function takeNames() {
    const [first, second, title] = ["name-0", "name-1", "game-title"].map((id) => find(`#${id}`).value.trim());
    table.names = first || second ? [first, second] : [];
    record.root.title = title;
    onName();
  }

  async function load(file) {
    if (file.size > MOST_ARCHIVE) return notice.tell(t("files.tooLong"));
    await read(await file.text());
  }

  /** Load the contents of a text: exported games, a link to a game, or a record of a game. */
  async function read(text) {
    const imported = importGames(text);
    if (imported !== null) return say(t("games.imported", { n: imported }));
    if (text.length > MOST_TEXT) return notice.tell(t("files.tooLong"));
    const link = /^\S+#(g=\S+)$/.exec(text.trim());
    if (link) return void (location.hash = link[1]);
    const key = record.key();
    try {
      const { names, format, ...game } = await api.read(text);
      onLoad(game, names);
      say(t("files.loaded", { rows: game.rows, cols: game.cols, moves: game.moves.length }));
    } catch (error) {
      // Retry only while the position is the same: a person who has moved on wants no other game.
      notice.fail("read", error, () => record.key() === key && read(text));
    }
  }

  /** Return the game in the chosen format: a text, or a Blob for a PNG. */
  async function written() {
    const picture = PICTURES[find("#format").value];
    if (picture) return picture.make(record);
    const { text } = await api.write(withLines(record.root), find("#format").value, [0, 1].map(nameOf));
    return text;
  }

  function fileName() {
    const { rows, cols } = record.game;
    const format = find("#format").value;
    return `dots-and-boxes-${rows}x${cols}.${PICTURES[format]?.ending ?? ENDINGS[format] ?? `${format}.txt`}`;
  }

  async function save() {
    try {
      const type = PICTURES[find("#format").value]?.type ?? "text/plain";
      download(await written(), type, fileName());
    } catch (error) {
      notice.fail("save", error, save);
    }
  }

  async function copy() {
    try {
      await toClipboard(await written(), "files.copied", "files.noClipboard");
    } catch (error) {
      notice.fail("copy", error, copy);
    }
  }

  async function share() {
    const fragment = toFragment(record.game, table.komi);
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

  /** Make the save button draggable: as a file into a folder if the browser supports it, else as text. */
  function offerDrags(button) {
    let text = null; // written when the pointer enters, because a drag cannot wait
    button.draggable = true;
    button.addEventListener("pointerenter", async () => {
      text = null;
      text = await written().catch(() => null);
    });
    button.addEventListener("dragstart", (event) => {
      if (typeof text !== "string") return event.preventDefault();
      dragging = true;
      const data = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
      event.dataTransfer.setData("DownloadURL", `text/plain:${fileName()}:${data}`);
      event.dataTransfer.setData("text/plain", text);
    });
    button.addEventListener("dragend", () => (dragging = false));
  }

  function acceptDrops() {
    const veil = find("#drop");
    const holds = (event, kind) => !dragging && event.dataTransfer?.types.includes(kind);
    const hasGame = (event) => holds(event, "Files") || holds(event, "text/plain");
    document.addEventListener("dragover", (event) => {
      if (!hasGame(event)) return;
      event.preventDefault();
      veil.hidden = false;
    });
    document.addEventListener("dragleave", ({ target, clientX: x, clientY: y }) => {
      const left = x <= 0 || y <= 0 || x >= innerWidth || y >= innerHeight;
      if (target === veil || left) veil.hidden = true;
    });
    document.addEventListener("drop", (event) => {
      if (!hasGame(event)) return;
      event.preventDefault();
      veil.hidden = true;
      const [file] = event.dataTransfer.files;
      const text = event.dataTransfer.getData("text/plain");
      if (file) load(file);
      else read(text);
    });
  }

  function acceptPastes() {
    document.addEventListener("paste", (event) => {
      if (event.target.closest?.("input, textarea") || find("dialog[open]")) return;
      const [file] = event.clipboardData.files;
      const text = event.clipboardData.getData("text/plain");
      if (!file && !text.trim()) return;
      event.preventDefault();
      if (file) load(file);
      else read(text);
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
  offerDrags(find("#save"));
  acceptDrops();
  acceptPastes();
  return { setFormats, showFormats, showNames };
}

/** Return a game for the server, without the fields that only the page uses (`joined`, `setUp`). */
function withLines({ joined, setUp, variations = [], comments = {}, ...line }) {
  return { ...line, comments, variations: variations.map(withLines) };
}

/** Return whether the CCGC record can hold a game: 5x5 from an empty board. */
function fitsCcgc({ rows, cols, start }) {
  return rows === 5 && cols === 5 && !start.length;
}
