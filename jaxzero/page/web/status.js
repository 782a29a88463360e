/** Who plays, the score, the state of the game in words, and the buttons that the state allows. */

import { clockFace } from "./clock.js";
import { find, findAll, html, icon, sideSign } from "./dom.js";
import { busyWords, isolated, LONG_WAIT, setText, t } from "./i18n.js";
import { levelName } from "./play.js";
import { settings } from "./settings.js";

export function createStatus({ record, play, review, practice, editor, isReview }) {
  function sideName(player) {
    const { seats, names } = play.table;
    if (names?.[player]) return isolated(names[player]);
    const people = seats.filter(({ kind }) => kind === "person").length;
    if (people === 1) return t(seats[player].kind === "engine" ? "name.engine" : "name.you");
    return t(player === 0 ? "name.first" : "name.second");
  }

  /** Return the name of a player for files and links: a person's, if it is known, or the computer with its level. */
  function whoPlays(player) {
    const { seats, names } = play.table;
    const { kind, level } = seats[player];
    if (names?.[player]) return names[player];
    if (kind === "engine") return t("name.level", { level: levelName(level) });
    return seats[1 - player].kind === "engine" ? settings.name : "";
  }

  function playerCard(player) {
    const { position } = record;
    const { kind, level } = play.table.seats[player];
    const turn = play.isOpen() && position.player === player;
    return html(
      "div",
      { class: `player side-${player} ${turn ? "turn" : ""}`, "data-testid": `player-${player}` },
      sideSign(player, 26),
      html("span", { class: "name", dir: "auto" }, play.table.names?.[player] || sideName(player)),
      html("span", { class: "detail" }, kind === "engine" ? levelName(level) : ""),
      clockFace(player, play.table.clocks),
      html("span", { class: "score", "data-testid": `score-${player}` }, String(position.score[player])),
    );
  }

  function statusWords() {
    const { position, at, game } = record;
    if (editor.isOn()) return t("status.edit");
    if (practice.isOn()) return practice.statusWords();
    if (record.inVariation) return t("status.variation");
    if (isReview() && review.noteWords()) return review.noteWords();
    if (position.over || (!play.isOpen() && (!isReview() || at === game.moves.length))) return resultWords(position);
    if (isReview()) return t("status.ply", { at, all: game.moves.length });
    if (play.state.hint) return play.state.hint;
    if (play.state.failed) return t("status.failed");
    if (play.watching() && !play.state.running) return t("status.paused");
    if (play.state.busy && !play.isReady()) return busyWords("status.thinking", play.state.waited);
    if (play.state.busy) return t("status.thinking") + (play.state.waited > LONG_WAIT ? ` ${play.state.waited} s` : "");
    if (play.state.marked !== null) return t("status.marked");
    if (at < game.moves.length) return t("status.earlier");
    if (!game.moves.length && sideName(position.player) === t("name.you")) return t("status.begin");
    return turnWords(position);
  }

  /** Return whether the page waits for the server before the game can go on. */
  function isBusy() {
    const { busy, checking, hinting, failed } = play.state;
    if (isReview() || !play.isOpen()) return false;
    return Boolean(failed || checking || hinting || busy);
  }

  function turnWords(position) {
    const again = position.plies.at(-1)?.closed.length > 0;
    const name = sideName(position.player);
    if (name === t("name.you")) return t(again ? "status.youAgain" : "status.yours");
    return t(again ? "status.again" : "status.turn", { name });
  }

  /** Return the side that has won, or null for a draw. */
  function winner() {
    const { score } = record.position;
    if (play.table.flagged !== undefined) return 1 - play.table.flagged;
    return score[0] === score[1] ? null : Number(score[1] > score[0]);
  }

  function resultWords({ score }) {
    const { flagged, resigned } = play.table;
    if (flagged !== undefined) return t(resigned ? "status.resigned" : "status.flagged", { name: sideName(flagged) });
    const side = winner() ?? 0;
    return t(winner() === null ? "status.drawn" : "status.won", { name: sideName(side), own: score[side], other: score[1 - side] });
  }

  return { sideName, whoPlays, playerCard, statusWords, resultWords, winner, isBusy };
}

/** Update the buttons. `ended` tells whether the end of a game is shown in play; `slips` counts its mistakes, if they are known. */
export function showTools({ record, play, editor, ended, slips }) {
  const { at, game, position } = record;
  const atEnd = at === game.moves.length;
  find("#again").hidden = find("#ended").hidden = !ended;
  find("#new-game").classList.toggle("primary", !ended);
  setText(find("#ended"), t(slips ? "end.mistakes" : slips === 0 ? "end.none" : "end.review", { n: slips }));
  const offer = ended ? play.offerAfter() : null;
  find("#other-level").hidden = !offer?.words;
  if (offer?.words) setText(find("#other-level"), t(offer.words));
  find("#end-lesson").hidden = !offer?.lesson;
  find("#redo").hidden = ended; // no redo and no hint at the end; other buttons take their place
  find("#hint").hidden = ended || play.engineWaits();
  find("#let-move").hidden = !play.engineWaits();
  find("#undo").disabled = !play.mayUndo();
  find("#first").disabled = find("#back").disabled = at === 0;
  find("#redo").disabled = find("#last").disabled = find("#forward").disabled = atEnd;
  find("#hint").disabled = !play.mayMove();
  find("#play-here").disabled = position.over;
  find("#resign").hidden = play.resigner() === null;
  find("#watch").hidden = !play.watching();
  const { running } = play.state;
  find("#watch-run").replaceChildren(icon(running ? "pause" : "play"), t(running ? "watch.pause" : "watch.run"));
  find("#edit").setAttribute("aria-pressed", String(editor.isOn()));
  setText(find("#edit"), t(editor.isOn() ? "done" : "edit.open"));
  for (const button of findAll(".analysis-switch")) button.setAttribute("aria-pressed", String(settings.analysis));
}
