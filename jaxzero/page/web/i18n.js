/** The texts of the page as pairs [English, Chinese]. A text has {names} of values, or is a function of the values. */

import { findAll } from "./dom.js";
import { settings } from "./settings.js";
import { LEARN } from "./texts/learn.js";
import { STUDY } from "./texts/study.js";
import { TABLE } from "./texts/table.js";

export const TEXTS = { ...TABLE, ...STUDY, ...LEARN };
export const LONG_WAIT = 3; // seconds; a longer wait is one for the compiler
const BESIDE_NUMBER = /(?<=\p{Script=Han})(?=[\w−])|(?<=[\w%])(?=\p{Script=Han})/gu; // Chinese has a space there
const LANGUAGES = ["en", "zh"]; // in the order of each pair

export function language() {
  if (LANGUAGES.includes(settings.language)) return settings.language;
  return navigator.language.startsWith("zh") ? "zh" : "en";
}

export function hasText(key) {
  return key in TEXTS;
}

export function t(key, values = {}) {
  const entry = TEXTS[key][LANGUAGES.indexOf(language())];
  const text = typeof entry === "function" ? entry(values) : entry.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  return language() === "zh" ? text.replace(BESIDE_NUMBER, " ") : text;
}

/** Return a name for use within a sentence, whose order of words it does not change if it is written from right to left. */
export function isolated(name) {
  return `\u2068${name.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")}\u2069`;
}

/** Return a date and its time, in ms, in the language of the page, as the browser's region writes it. */
export function dateWords(date) {
  const locale = navigator.languages.find((each) => each.startsWith(language())) ?? language();
  return new Date(date).toLocaleString(locale, { dateStyle: "short", timeStyle: "short" });
}

/** Say how long the server has been compiling or thinking, and how long the last such wait took. */
export function waitWords(seconds) {
  return t("warming", { seconds, usual: Math.max(settings.usualWait, seconds) });
}

/** Return a text about a wait; once it is long, say for how long. */
export function busyWords(key, seconds) {
  return seconds > LONG_WAIT ? waitWords(seconds) : t(key);
}

/** Set the texts of all elements with a `data-i18n...` attribute in the current language. */
export function translate(root = document) {
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  for (const element of findAll("[data-i18n]", root)) setText(element, t(element.dataset.i18n));
  for (const element of findAll("[data-i18n-placeholder]", root)) element.placeholder = t(element.dataset.i18nPlaceholder);
  for (const element of findAll("[data-i18n-label]", root)) {
    const text = t(element.dataset.i18nLabel);
    element.setAttribute("aria-label", text);
    if (element.matches("button")) element.title = text;
  }
}

/** Change the text of an element and keep its icon. */
export function setText(element, text) {
  const icon = element.querySelector(":scope > .icon");
  element.replaceChildren(...(icon ? [icon] : []), text);
}
