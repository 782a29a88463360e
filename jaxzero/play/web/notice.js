/** What the page tells: errors as a calm line above the board, short words, words for screen readers. */

import { find } from "./dom.js";
import { setText, t } from "./i18n.js";

export function createNotice() {
  const element = find("#notice");
  const button = find("#notice-retry");
  let onButton = null;
  let onClose = null;
  let offered = false; // what is shown waits for an answer

  function open(text, { action = null, label = "notice.retry", close = null } = {}) {
    find("#notice-text").textContent = text;
    button.hidden = !action;
    button.dataset.i18n = label;
    setText(button, t(label));
    onButton = action;
    onClose = close;
    offered = close !== null;
    element.hidden = false;
  }

  function close() {
    element.hidden = true;
  }

  find("#notice-close").addEventListener("click", () => {
    close();
    onClose?.();
  });
  button.addEventListener("click", () => {
    close();
    onButton();
  });

  return {
    /** Tell an error of a request and offer to repeat it. */
    show(error, action) {
      if (!error.kind) throw error; // a fault of this page, not of the server
      open(t(`error.${error.kind}`, { message: error.message }), { action });
    },
    /** Ask something: the button, which has this label, acts; closing declines. */
    offer: (text, label, action, decline) => open(t(text), { action, label, close: decline }),
    tell: (text) => open(text),
    isShown: () => !element.hidden,
    /** Hide an error that is no more; a question stays. */
    hide: () => offered || close(),
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
