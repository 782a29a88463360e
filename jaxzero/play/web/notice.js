/** Errors as a calm line above the board, with a button to try again. */

import { find } from "./dom.js";
import { t } from "./i18n.js";

export function createNotice() {
  const element = find("#notice");
  let retry = null;

  function open(text, action) {
    find("#notice-text").textContent = text;
    find("#notice-retry").hidden = !action;
    retry = action;
    element.hidden = false;
  }

  function hide() {
    element.hidden = true;
  }

  find("#notice-close").addEventListener("click", hide);
  find("#notice-retry").addEventListener("click", () => {
    hide();
    retry();
  });

  return {
    /** Tell an error of a request and offer to repeat it. */
    show(error, action) {
      if (!error.kind) throw error; // a fault of this page, not of the server
      open(t(`error.${error.kind}`, { message: error.message }), action);
    },
    tell: (text) => open(text, null),
    hide,
  };
}
