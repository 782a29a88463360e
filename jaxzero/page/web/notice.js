/** Messages of the page: a line of notices, short messages, and messages for screen readers. */

import { find } from "./dom.js";
import { hasText, setText, t } from "./i18n.js";

const REST = 2000; // ms before the next retry
const CALM = 60000; // ms without a notice of failures after a person has closed one

/**
 * Create the line of notices. It shows one notice: a failure before a word before an offer.
 *
 * `answers()` asks the server for anything and rejects if the server does not answer.
 */
export function createNotice(answers) {
  const element = find("#notice");
  const button = find("#notice-retry");
  const notices = { failure: null, word: null, offer: null }; // {text, label, action, onClose} each; `text` is a function
  const failed = new Map(); // functions that repeat the failed requests, by name
  let failure = null; // the last failure as a notice
  let calmUntil = 0;
  let timer = 0;

  const shown = () => Object.keys(notices).find((kind) => notices[kind]);

  function set(kind, notice) {
    notices[kind] = notice;
    render();
  }

  /** Show the first notice in the current language. */
  function render() {
    const { text, label = "notice.retry", action } = notices[shown()] ?? {};
    element.hidden = !shown();
    if (element.hidden) return;
    element.classList.toggle("warn", shown() === "failure" || !action);
    find("#notice-text").textContent = text();
    button.hidden = !action;
    button.dataset.i18n = label;
    setText(button, t(label));
  }

  /** Report a failed request. Returns whether the page will repeat it automatically: not without `repeat` or if it is wrong. */
  function fail(name, error, repeat) {
    if (!error.kind) throw error; // a bug of this page, not a failure of the server
    const isWrong = error.kind === "refused";
    const text = () => t(isWrong && hasText(`error.${name}`) ? `error.${name}` : `error.${error.kind}`);
    if (isWrong || !repeat) {
      set("word", { text });
      return false;
    }
    failed.set(name, repeat);
    failure = { text, action: repeatAll, onClose: () => (calmUntil = Date.now() + CALM) };
    if (Date.now() > calmUntil) set("failure", failure);
    timer ||= setTimeout(look, REST);
    return true;
  }

  /** Repeat the failed requests if the server answers again, else check again later. */
  async function look() {
    clearTimeout(timer);
    timer = 0;
    if (!failed.size) return;
    try {
      await answers();
      calmUntil = 0;
      repeatAll();
    } catch {
      if (Date.now() > calmUntil) set("failure", failure);
      timer ||= setTimeout(look, REST);
    }
  }

  function repeatAll() {
    const repeats = [...failed.values()];
    failed.clear();
    set("failure", null);
    for (const repeat of repeats) repeat();
  }

  /** Forget a failed request, because it has succeeded since or is no longer wanted. */
  function settle(name) {
    if (failed.delete(name) && !failed.size) set("failure", null);
  }

  find("#notice-close").addEventListener("click", () => {
    const { onClose } = notices[shown()];
    set(shown(), null);
    onClose?.();
  });
  button.addEventListener("click", () => {
    const { action } = notices[shown()];
    set(shown(), null);
    action();
  });
  addEventListener("online", look);

  return {
    fail,
    settle,
    render,
    /** Offer an action by a button with this label. */
    offer: (text, label, action) => set("offer", { text: () => t(text), label, action }),
    /** Show the text that a function returns until `moveOn` is called. */
    tell: (text) => set("word", { text }),
    /** The person goes on: words end, and offers too once a move is `drawn`. */
    moveOn(drawn = false) {
      if (drawn) notices.offer = null;
      set("word", null);
    },
  };
}

let toastTimer = 0;

/** Show a text for a short time and announce it to screen readers. */
export function say(text) {
  if (!text) return;
  const toast = find("#toast");
  toast.textContent = text;
  toast.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => toast.classList.remove("shown"), 3500);
}

/** Announce a text to screen readers only. */
export function tell(text) {
  find("#live").textContent = text;
}
