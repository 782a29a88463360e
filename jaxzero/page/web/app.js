/** The page: connects the board, the game, the engine and the panels. */

import { createAnalysis } from "./analysis.js";
import { api } from "./api.js";
import { addReview, archivedSlips, openArchive, setDamagedAside } from "./archive.js";
import { boxItems, createBoard, edgeWords } from "./board.js";
import { createClock } from "./clock.js";
import { confirm, openSettings } from "./dialogs.js";
import { find, findAll, placeIcons, replaceChanged } from "./dom.js";
import { createFiles } from "./files.js";
import { language, t, translate } from "./i18n.js";
import { listenToKeys, openShortcuts } from "./keys.js";
import { createLessons } from "./lessons.js";
import { openNewGame, setupHere } from "./new_game.js";
import { createNotice, say, tell } from "./notice.js";
import { createPlay, setTable } from "./play.js";
import { createPractice } from "./practice.js";
import { setLevels } from "./rating.js";
import { createRecord, isAnnotated } from "./record.js";
import { createReview } from "./review.js";
import { lastTurn, replay } from "./rules.js";
import { clearStorage, remember, reset, settings } from "./settings.js";
import { sound } from "./sound.js";
import { createStatus, showTools } from "./status.js";
import { createEditor, createTables } from "./tables.js";
import { createTeacher } from "./teach.js";
import { createTrainer, problemAt } from "./train.js";

let info = null; // what the server offers; null until it answers
let view = "learn";

const notice = createNotice(() => api.info());
const isReview = () => view === "review";
const board = createBoard(find("#board-host"), {
  onEdge: press,
  onFocus: (edge) => analysis.describe(edge),
  onHold: (edge) => say(analysis.describe(edge)),
  arrowsStep: isReview,
});
const record = createRecord(setTable(settings.setup).game);

const analysis = createAnalysis({
  record,
  board,
  notice,
  panel: find("#analysis-panel"),
  nameOf: (player) => status.sideName(player),
  better: () => (isReview() ? null : play.markedEdge()) ?? (practice.isOn() ? null : review.better()),
  isShown: () => settings.analysis && !practice.isOn(),
  linePlayer: () => (isReview() ? playLine : null),
  wanted: () => settings.analysis || practice.isOn() || play.state.hinting || (view === "play" && settings.teaching && play.mayMove()),
});
const play = createPlay({ record, analysis, notice, isShown: () => view === "play", onState: showState, onChain: tellOfChains });
const review = createReview({ record, notice, isWanted: () => isReview() || (isEnd() && !play.watching()), isShown: isReview, nameOf: (player) => status.sideName(player), onNews: showState, onMove: goTo, onComment: () => tables.keep(), onReviewed: (accuracy, slips) => addReview(play.table.id, { accuracy, slips }), seats: () => play.table.seats });
const practice = createPractice({ record, analysis, onTable: (table) => tables.openArchived(table), onChange: () => (showState(), analysis.refresh()) });
const teacher = createTeacher({ play, onShow: analysis.showHint });
const editor = createEditor({ record, onChange: showState });
const status = createStatus({ record, play, review, practice, editor, isReview });
const lessons = createLessons({ parent: find("#learning") });
const trainer = createTrainer({ parent: find("#learning"), notice });
let learning = lessons; // what the view "learn" shows: the lessons or the trainer
const tables = createTables({ record, play, editor, notice, showView, openView, focusBoard: () => board.focus() });
const clock = createClock({ table: play.table, side: runningSide, onFlag: endByClock });
const files = createFiles({
  record,
  table: play.table,
  whoPlays: (player) => status.whoPlays(player),
  notice,
  onName: () => (tables.keep(), showState()),
  onLoad: (game, facts) => tables.showLoaded(game, facts),
});

/** Return whether the end of a game is shown outside the review. */
function isEnd() {
  return view === "play" && !play.isOpen() && record.at === record.game.moves.length;
}

function press(edge, mayMiss) {
  if (editor.isOn()) editor.toggle(edge);
  else if (practice.isOn()) practice.press(edge);
  else if (isReview()) record.position.drawn[edge] || record.play([edge], !continuesGame());
  else play.press(edge, mayMiss);
}

/** Draw the edges of a line as a variation. */
function playLine(edges) {
  for (const edge of edges) record.play([edge], true);
}

/** Return whether an edge drawn in the review continues the game: at the end of an unfinished game between people, without clocks. */
function continuesGame() {
  return record.at === record.game.moves.length && !tables.hasEngine() && !play.table.clocks && !play.ended();
}

/** Return the side whose clock runs, from the first move to the end. An engine has time while it is not asked, or not compiled. */
function runningSide() {
  if ((play.watching() && !play.state.running) || play.ended() || !record.root.moves.length) return null;
  const { player } = replay(record.root); // also while an earlier move is looked at
  return play.table.seats[player].kind === "person" || (view === "play" && play.isReady()) ? player : null;
}

/** End the game for the side whose time is up, and say so in every view. */
function endByClock(player) {
  play.flag(player);
  if (view !== "play") say(status.resultWords(record.position));
}

/** Go to a view by its address. If the view is already shown, the game goes on. */
function openView(name) {
  if (view !== name) location.hash = `#${name}`;
  else {
    history.replaceState(null, "", `#${name}`); // the address may still hold a shared game
    if (name === "play") play.next();
  }
}

/** Show everything that depends on the position. */
function showPosition(reason) {
  if (reason === "play") announce();
  if (!play.state.busy) notice.moveOn(reason === "play"); // a move of the engine does not remove the notice
  practice.refresh();
  clock.look(reason === "play" ? turnEnded(record.position) : null);
  showState(reason === "play");
  files.show();
  analysis.refresh();
  review.refresh();
  if (reason !== "view") tables.keep(); // showing a view must not replace the stored game of another tab
}

/** Return the player whose turn the last ply has ended, or null. */
function turnEnded({ plies, player }) {
  return plies.at(-1).player === player ? null : 1 - player;
}

function announce() {
  const { plies } = record.position;
  const first = plies.findLastIndex((_, ply) => !record.game.joined?.includes(ply)); // the first ply of the last click
  const { edge, player } = plies[first];
  const closed = plies.slice(first).reduce((sum, ply) => sum + ply.closed.length, 0);
  sound(record.position.over ? "end" : closed ? "box" : "edge");
  const move = t("live.move", { name: status.sideName(player), place: edgeWords(record.game, edge), closed });
  tell(record.position.over ? `${move}. ${status.resultWords(record.position)}` : move);
}

/** Tell a newcomer, once, why one click drew more than one edge. */
function tellOfChains(count) {
  if (settings.chainsTold) return;
  remember({ chainsTold: true });
  say(t("chains.told", { n: count }));
}

/** Show whose turn it is and what can be done. */
function showState(slowly = false) {
  const { game, position } = record;
  const enabled = isReview() ? !position.over : play.mayMove();
  board.show(game, position, { last: lastTurn(position.plies), enabled, editing: editor.isOn(), slowly });
  find("#players").replaceChildren(...[0, 1].map(status.playerCard));
  analysis.draw(); // redraws the edge that a person has marked
  const ended = isEnd();
  const words = status.statusWords();
  find("#status-words").textContent = words;
  find("#table").classList.toggle("named", /[hv]\d,\d/.test(words)); // the board shows its coordinates
  find("#status").className = `status ${status.isBusy() ? "busy" : ""} ${ended ? `result side-${status.winner()}` : ""}`;
  replaceChanged(find("#boxes"), boxItems(game, position, status.sideName));
  showTools({ record, play, editor, ended, slips: review.slipCount() });
  showTitle();
  teacher.render();
}

/** Name the view in the title of the window and for screen readers. */
function showTitle() {
  if (view !== "learn") find("#table h1").textContent = record.root.title || t(`nav.${view}`);
  document.title = `${find("main > :not([hidden]) h1").textContent} · jaxzero`;
}

/** Show another ply of the game on the table. */
function goTo(at, path) {
  practice.end();
  if (isReview()) record.goTo(at, path);
  else play.goTo(at);
}

/** Return whether the arrow keys step through the game. */
function mayStep() {
  return isReview() && !editor.isOn() && !practice.isOn();
}

/** Open the editor of positions, or close it if it is open. */
function edit() {
  if (editor.isOn()) return editor.close();
  if (record.root.moves.length || isAnnotated(record.root)) tables.setAside(); // else nothing to keep
  practice.end();
  openView("review");
  Object.assign(play.table, { clocks: null, flagged: undefined, rated: false });
  editor.open();
}

function toggleAnalysis() {
  remember({ analysis: !settings.analysis });
  if (settings.analysis) play.unrate(); // it shows good edges
  else analysis.stop();
  showState();
  analysis.refresh();
}

/** Show the page that the address names, or the game that it holds. */
function route() {
  const name = location.hash.slice(1);
  if (name.startsWith("g=")) return tables.showShared(name);
  const lesson = /^lesson-([1-9]\d*)$/.exec(name)?.[1] - 1;
  if (lesson < lessons.count) return showView("learn", lesson);
  const problem = problemAt(name);
  if (problem) return showView("learn", problem, trainer);
  if (["play", "review"].includes(name)) return showView(name);
  showView(/^(learn|lesson-.*|train.*)$/.test(name) || !settings.visited ? "learn" : "play"); // or no such lesson or theme
  if (name === "train") find("#themes").scrollIntoView();
}

function showView(name, page = null, teacher = lessons) {
  notice.moveOn();
  play.halt();
  learning.leave();
  learning = teacher;
  if (name !== "review") {
    practice.end();
    editor.close();
    record.leaveVariation();
    review.stop();
  }
  view = name;
  remember({ visited: true });
  find("#learning").hidden = view !== "learn";
  find("#table").hidden = view === "learn";
  find("#table").dataset.view = view;
  for (const link of findAll(".bar nav a")) {
    if (link.getAttribute("href") === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "learn") {
    analysis.stop();
    learning.open(page);
    showTitle();
  } else {
    showPosition("view");
    play.next();
  }
  scrollTo(0, 0);
}

/** Show all texts in the language of the settings. */
function showLanguage() {
  play.state.hint = "";
  play.unmark(); // a warning is in the other language
  translate();
  notice.render();
  files.show();
  if (view === "learn") learning.render();
  showState();
  review.render();
  practice.render();
  analysis.refresh();
}

function switchLanguage() {
  remember({ language: language() === "zh" ? "en" : "zh" });
  showLanguage();
}

function changeSetting(name) {
  if (name === "sound") sound("box");
  if (name !== "teaching") return;
  play.unmark();
  analysis.refresh();
}

async function askInfo() {
  try {
    info = await api.info();
    setLevels(info.levels);
  } catch (error) {
    notice.fail("info", error, askInfo);
  }
}

function resign() {
  const player = play.resigner(); // the other side may move before the person agrees
  confirm("resign", () => {
    play.flag(player, true);
    board.focus();
  });
}

/** Delete what this browser keeps. */
const forget = {
  games: () => tables.remove(),
  rating: () => reset("rating", "ratings"),
  streak: () => reset("streak", "counted"),
  all: () => {
    play.table.clocks = null; // else they are stored again
    clearStorage();
    location.reload();
  },
};

const actions = {
  newGame: () => openNewGame(tables.start),
  undo: () => (isReview() ? goTo(record.at - 1) : play.undo()),
  redo: () => (isReview() ? goTo(record.at + 1) : play.redo()),
  first: () => goTo(0),
  last: () => goTo(record.game.moves.length),
  stepBack: () => mayStep() && goTo(record.at - 1),
  stepForward: () => mayStep() && goTo(record.at + 1),
  unmark: () => play.unmark(),
  hint: () => play.hint(),
  letMove: () => view === "play" && !play.state.busy && play.letMove(),
  playOn: () => openNewGame(tables.startHere, setupHere(play.table.seats, record.position.player, record.game)),
  analysis: toggleAnalysis,
  mistake: () => isReview() && review.jump(),
  pause: () => play.watching() && play.run(!play.state.running),
  help: openShortcuts,
  focusBoard: () => board.focus(),
  step: () => play.step(),
  resign,
  again: () => tables.startAgain(),
  otherLevel: () => tables.startOtherLevel(),
  games: () => openArchive(tables.openArchived, () => practice.start(archivedSlips()), tables.remove),
  practise: () => practice.start(review.slips()),
  edit,
  settings: () => openSettings(info, changeSetting, forget),
  language: switchLanguage,
  skip: (event) => (event.preventDefault(), find('main > :not([hidden]) .board [tabindex="0"]')?.focus()),
};

function listen() {
  for (const button of findAll("[data-action]")) button.addEventListener("click", actions[button.dataset.action]);
  const speed = find("#watch-speed");
  speed.value = settings.speed;
  speed.addEventListener("input", () => remember({ speed: Number(speed.value) }));
  listenToKeys(actions, () => view !== "learn");
  addEventListener("hashchange", route);
  addEventListener("refused", () => say(t("error.storage")));
  addEventListener("pagehide", () => play.table.clocks && tables.keep()); // stores the time left on the clocks
}

history.scrollRestoration = "manual"; // every page begins at its top
placeIcons();
setDamagedAside();
tables.restore();
record.onChange(showPosition);
listen();
route();
showLanguage();
askInfo();
navigator.serviceWorker?.register("sw.js").catch(() => {}); // keeps the page; browsers refuse it for HTTP from another computer
