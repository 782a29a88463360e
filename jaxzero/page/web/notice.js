/** What the page tells: a calm line at the edge of the window, short words, words for screen readers. */

import { find } from "./dom.js";
import { setText, t } from "./i18n.js";

const FIRST_REST = 1500; // ms before what failed is repeated; doubled each time
const LONGEST_REST = 20000; // ms
const CALM = 60000; // ms without a failure after which the next one is new

/**
 * Create the line of notices. It shows one notice at a time: a failure before words before an offer.
 *
 * `answers()` resolves as soon as the server answers at all.
 */
export function createNotice(answers) {
  const element = find("#notice");
  const button = find("#notice-retry");
  const notices = { failure: null, word: null, offer: null }; // {text, label, action, onClose} each
  const failed = new Map(); // how to repeat what failed, by name
  const hushed = new Set(); // names of failures that were closed: not told again
  let timer = 0;
  let rest = FIRST_REST;
  let lastFailure = 0;

  const shown = () => Object.keys(notices).find((kind) => notices[kind]);

  function set(kind, notice) {
    notices[kind] = notice;
    const { text, label = "notice.retry", action } = notices[shown()] ?? {};
    element.hidden = !shown();
    if (element.hidden) return;
    element.classList.toggle("warn", shown() === "failure" || !action);
    find("#notice-text").textContent = text;
    button.hidden = !action;
    button.dataset.i18n = label;
    setText(button, t(label));
  }

  /** Tell that a request failed. Returns whether the page will repeat it by itself. */
  function fail(name, error, repeat) {
    if (!error.kind) throw error; // a fault of this page, not of the server
    const text = t(`error.${error.kind}`, { message: error.message });
    if (!error.passes) {
      set("word", { text });
      return false;
    }
    failed.set(name, repeat);
    if (Date.now() - lastFailure > CALM) {
      rest = FIRST_REST;
      hushed.clear();
    }
    lastFailure = Date.now();
    if (!hushed.has(name)) set("failure", { text, action: repeatAll, onClose: hush });
    timer ||= setTimeout(look, rest);
    return true;
  }

  function hush() {
    for (const name of failed.keys()) hushed.add(name);
  }

  /** Repeat what failed if the server answers again, else look later. */
  async function look() {
    clearTimeout(timer);
    timer = 0;
    if (!failed.size) return;
    rest = Math.min(2 * rest, LONGEST_REST);
    try {
      await answers();
    } catch {
      lastFailure = Date.now();
      timer ||= setTimeout(look, rest);
      return;
    }
    repeatAll();
  }

  function repeatAll() {
    const repeats = [...failed.values()];
    failed.clear();
    set("failure", null);
    for (const repeat of repeats) repeat();
  }

  /** Note that something which may have failed is done, or is not wanted any more. */
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
    /** Ask something: the button, which has this label, acts; closing declines. */
    offer: (text, label, action, onClose) => set("offer", { text: t(text), label, action, onClose }),
    withdraw: () => set("offer", null),
    /** Tell something until the next thing is done; a button may act on it. */
    tell: (text, label, action) => set("word", { text, label, action }),
    moveOn: () => set("word", null),
  };
}

/** Return a function that says something to eyes and to screen readers, for a short while. */
export function createSpeaker() {
  const toast = find("#toast");
  let timer = 0;
  return (text) => {
    if (!text) return;
    toast.textContent = text;
    toast.classList.add("shown");
    clearTimeout(timer);
    timer = setTimeout(() => toast.classList.remove("shown"), 3500);
  };
}

/** Say something to screen readers only. */
export function tell(text) {
  find("#live").textContent = text;
}
