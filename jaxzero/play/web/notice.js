/** Errors as a calm line above the board, with a button to try again. */

import { find } from "./dom.js";
import { setText, t } from "./i18n.js";

export function createNotice() {
  const element = find("#notice");
  const button = find("#notice-retry");
  let onButton = null;
  let onClose = null;

  function open(text, { action = null, label = "notice.retry", close = null } = {}) {
    find("#notice-text").textContent = text;
    button.hidden = !action;
    button.dataset.i18n = label;
    setText(button, t(label));
    onButton = action;
    onClose = close;
    element.hidden = false;
  }

  function hide() {
    element.hidden = true;
  }

  find("#notice-close").addEventListener("click", () => {
    hide();
    onClose?.();
  });
  button.addEventListener("click", () => {
    hide();
    onButton();
  });

  return {
    /** Tell an error of a request and offer to repeat it. */
    show(error, action) {
      if (!error.kind) throw error; // a fault of this page, not of the server
      open(t(`error.${error.kind}`, { message: error.message }), { action });
    },
    /** Tell something that one can do about: the button has a label, closing declines. */
    offer: (text, label, action, close) => open(t(text), { action, label, close }),
    tell: (text) => open(text),
    hide,
  };
}
