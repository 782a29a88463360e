/** The buttons below the board: which are visible and which are enabled. */

import { find, findAll, icon } from "./dom.js";
import { setText, t } from "./i18n.js";
import { settings } from "./settings.js";

/** Update the buttons. `ended` is true if the end of a game is shown outside the review. */
export function showTools({ record, play, editor, ended }) {
  const { at, game, position } = record;
  const atEnd = at === game.moves.length;
  find("#ended").hidden = !ended;
  const level = ended ? play.levelAfter() : null;
  find("#other-level").hidden = level === null;
  if (level) setText(find("#other-level"), t(level.harder ? "end.harder" : "end.easier"));
  find("#redo").hidden = ended; // no redo and no hint at the end; other buttons take their place
  find("#hint").hidden = ended || play.engineWaits();
  find("#let-move").hidden = !play.engineWaits();
  find("#undo").disabled = !play.mayUndo();
  find("#first").disabled = find("#back").disabled = at === 0;
  find("#redo").disabled = find("#last").disabled = find("#forward").disabled = atEnd;
  find("#hint").disabled = !play.mayMove();
  find("#play-here").disabled = position.over;
  find("#seats").hidden = play.ended();
  find("#resign").hidden = play.resigner() === null;
  find("#watch").hidden = !play.watching();
  const { running } = play.state;
  find("#watch-run").replaceChildren(icon(running ? "pause" : "play"), t(running ? "watch.pause" : "watch.run"));
  find("#edit").setAttribute("aria-pressed", String(editor.isOn()));
  setText(find("#edit"), t(editor.isOn() ? "done" : "edit.open"));
  for (const button of findAll(".analysis-switch")) button.setAttribute("aria-pressed", String(settings.analysis));
}
