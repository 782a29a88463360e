/** Parts of dialogs, and the dialog for the settings. */

import { button, find, html, icon, row } from "./dom.js";
import { t } from "./i18n.js";
import { remember, settings } from "./settings.js";

/** Return the dialog of the page, filled with a heading, a close button and its parts, and show it. */
export function openDialog(name, ...parts) {
  const dialog = find("#dialog");
  const close = html("button", { class: "quiet", type: "button", "aria-label": t("close"), onclick: () => dialog.close() }, icon("close"));
  dialog.replaceChildren(html("div", { class: "dialog-head" }, html("h2", { id: `${name}-title` }, t(`${name}.title`)), close), ...parts);
  dialog.setAttribute("aria-labelledby", `${name}-title`);
  dialog.dataset.testid = `${name}-dialog`;
  if (!dialog.open) dialog.showModal();
  find("form :checked", dialog)?.focus(); // here Enter submits the form; on the close button it would not
  return dialog;
}

/** Ask whether to do something, and do it if the person agrees. */
export function confirm(name, action, values) {
  const agree = () => {
    dialog.close();
    action();
  };
  const foot = html(
    "div",
    { class: "dialog-foot" },
    button(`${name}-cancel`, t("cancel"), () => dialog.close()),
    button(`${name}-agree`, t(name), agree, { class: "primary" }),
  );
  const dialog = openDialog(name, html("div", { class: "dialog-body" }, html("p", {}, t(`${name}.text`, values)), foot));
}

/** Return a row of choices. `options` are [value, words]. */
export function segments(name, legend, options, chosen, onChange) {
  const choice = ([value, words]) =>
    html(
      "label",
      {},
      html("input", { type: "radio", name, value, checked: value === chosen, onchange: () => onChange(value), "data-testid": `${name}-${value}` }),
      html("span", {}, words),
    );
  return html("fieldset", {}, html("legend", {}, legend), html("div", { class: "segments" }, options.map(choice)));
}

/** Return a switch that is on or off, with a note, whose text may need `values`. */
export function switchOf(name, on, onChange, values) {
  const box = html("input", { type: "checkbox", checked: on, onchange: ({ target }) => onChange(target.checked), "data-testid": name });
  return html("label", { class: "switch" }, box, html("span", {}, t(`settings.${name}`), html("small", {}, t(`settings.${name}.note`, values))));
}

/** Open the settings. `onChange(name)` is called after each change; `forget` has a function to delete each kind of data. */
export function openSettings(info, onChange, forget) {
  const set = (name) => (value) => {
    remember({ [name]: value });
    onChange(name);
  };
  const eraser = (kind) => button(`forget-${kind}`, t(`forget.${kind}`), () => confirm("forget", forget[kind], { what: t(`forget.${kind}`) }), { class: "small" });
  const version = info && html("p", { class: "muted" }, t("settings.version", info));
  const body = html(
    "div",
    { class: "dialog-body" },
    switchOf("teaching", settings.teaching, set("teaching")),
    switchOf("sound", settings.sound, set("sound")),
    html("fieldset", {}, html("legend", {}, t("forget.legend")), row(...Object.keys(forget).map(eraser))),
    version,
  );
  openDialog("settings", body);
}
