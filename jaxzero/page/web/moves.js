/** The list of moves as a tree: the game, its variations, its comments, and the mistakes that a review found. */

import { find, html, replaceChanged, sideSign } from "./dom.js";
import { t } from "./i18n.js";
import { formatNumber } from "./outcome.js";
import { costClass } from "./overlay.js";
import { gameAlong } from "./record.js";
import { edgeName, replay } from "./rules.js";

/** Create the list. `slipAt(ply, game)` returns a reviewed mistake or null; `onMove(ply, path)` shows a ply. */
export function createMoves({ record, nameOf, slipAt, onMove, onComment }) {
  const list = find("#moves");
  const comment = find("#comment");
  let commented = null; // the key of the position that the comment shown belongs to

  function render() {
    const focused = list.contains(document.activeElement);
    replaceChanged(list, lineItems(record.root, []));
    const current = find('[aria-current="true"]', list);
    if (focused) current?.focus();
    if (current) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 2;
    find("#variation-tools").hidden = !record.inVariation;
    const isSame = commented === record.key();
    if (!isSame || document.activeElement !== comment) comment.value = record.comment; // else a person is typing it
    commented = record.key();
  }

  /** Return the items of a line: its moves, and after each move its alternatives (variations). */
  function lineItems(line, path) {
    const game = gameAlong(record.root, path);
    const { plies } = replay(game);
    const items = !path.length && line.comments?.[0] ? [html("li", {}, noteOf(line.comments[0]))] : [];
    for (let ply = line.at ?? 0; ply <= plies.length; ply++) {
      if (ply < plies.length) items.push(moveItem(plies[ply], ply, game, path, line));
      for (const other of (line.variations ?? []).filter(({ at }) => at === ply)) {
        const inner = html("ol", { class: "moves-variation" }, lineItems(other, [...path, other]));
        items.push(html("li", { class: "branch" }, inner));
      }
    }
    return items;
  }

  function moveItem({ edge, player, closed }, index, game, path, line) {
    const places = path.map((each, depth) => (path[depth - 1] ?? record.root).variations.indexOf(each));
    const shown = isShown(index, path);
    const slip = slipAt(index, game);
    const name = edgeName(game, edge);
    const note = line.comments?.[index + 1];
    const button = html(
      "button",
      {
        class: shown && index < record.at ? "" : "later",
        "aria-current": shown && index === record.at - 1 ? "true" : null,
        title: note,
        "data-testid": shown ? `move-${index + 1}` : null,
        onclick: () => onMove(index + 1, pathAt(places)),
      },
      html("span", { class: "ply" }, String(index + 1)),
      sideSign(player, 11),
      html("span", { class: "visually-hidden" }, nameOf(player)),
      name,
      closed.length ? html("span", { class: "closed" }, `+${closed.length}`) : null,
      slip ? html("span", { class: `slip ${costClass(slip.lost)}` }, `${slip.exact ? "−" : "≈−"}${formatNumber(slip.lost)}`) : null,
      note ? noteOf(note) : null,
    );
    return html("li", { class: `by-${player}` }, button);
  }

  const noteOf = (text) => html("span", { class: "note", dir: "auto", "aria-hidden": "true" }, text);

  /** Return the path from the index of each of its lines among the variations of the line before. */
  function pathAt(places) {
    let line = record.root;
    return places.map((place) => (line = line.variations[place]));
  }

  /** Return whether a move of the line at the end of a path belongs to the line shown. */
  function isShown(index, path) {
    if (!path.every((line, depth) => record.path[depth] === line)) return false;
    return path.length === record.path.length || index < record.path[path.length].at;
  }

  comment.addEventListener("input", () => {
    record.setComment(comment.value.trim());
    onComment();
    render();
  });
  find("#leave-variation").addEventListener("click", () => record.leaveVariation());
  find("#remove-variation").addEventListener("click", () => record.remove());
  return { render };
}
