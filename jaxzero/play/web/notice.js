/** Errors as a calm line above the board, with a button to try again. */

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
