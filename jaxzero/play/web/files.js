/** Loading, saving, copying and sharing a game; setting up a position. */

import { api } from "./api.js";
import { find, html } from "./dom.js";
import { hasText, t } from "./i18n.js";
import { toFragment } from "./share.js";

const MOST_TEXT = 60000; // letters; the server takes 64 KiB
const ENDINGS = { json: "json", ccgc: "txt", ascii: "txt" };

export function createFiles({ record, komi, names, notice, say, onLoad }) {
  function fillFormats(formats) {
    const select = find("#format");
    const chosen = select.value;
    const label = (id) => (hasText(`format.${id}`) ? t(`format.${id}`) : id);
    select.replaceChildren(...formats.map((id) => html("option", { value: id }, label(id))));
    if (formats.includes(chosen)) select.value = chosen;
  }

  async function load(file) {
    if (file.size > MOST_TEXT) return notice.tell(t("files.tooLong"));
    await read(await file.text());
  }

  async function read(text) {
    try {
      const { rows, cols, start, moves, names } = await api.read(text);
      onLoad({ rows, cols, start, moves }, names);
      say(t("files.loaded", { rows, cols, moves: moves.length }));
    } catch (error) {
      notice.show(error, () => read(text));
    }
  }

  async function written() {
    const { text } = await api.write(record.game, find("#format").value, names());
    return text;
  }

  async function save() {
    try {
      const address = URL.createObjectURL(new Blob([await written()], { type: "text/plain" }));
      const { rows, cols } = record.game;
      const ending = ENDINGS[find("#format").value] ?? "txt";
      html("a", { href: address, download: `dots-and-boxes-${rows}x${cols}.${ending}` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } catch (error) {
      notice.show(error, save);
    }
  }

  async function copy() {
    try {
      await toClipboard(await written(), "files.copied", "files.noClipboard");
    } catch (error) {
      notice.show(error, copy);
    }
  }

  async function share() {
    const fragment = toFragment(record.game, komi());
    history.replaceState(null, "", `#${fragment}`);
    await toClipboard(location.href, "files.shared", "files.link");
  }

  async function toClipboard(text, done, refused) {
    try {
      await navigator.clipboard.writeText(text);
      say(t(done));
    } catch {
      say(t(refused));
    }
  }

  function acceptDrops() {
    const veil = find("#drop");
    const hasFile = (event) => event.dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      veil.hidden = false;
    });
    veil.addEventListener("dragleave", () => (veil.hidden = true));
    document.addEventListener("drop", (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      veil.hidden = true;
      load(event.dataTransfer.files[0]);
    });
  }

  find("#open-file").addEventListener("click", () => find("#file").click());
  find("#file").addEventListener("change", ({ target }) => {
    if (target.files.length) load(target.files[0]);
    target.value = "";
  });
  find("#save").addEventListener("click", save);
  find("#copy").addEventListener("click", copy);
  find("#share").addEventListener("click", share);
  acceptDrops();
  return { fillFormats };
}
