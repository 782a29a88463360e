/** Two clocks: time for each side, an increment for each turn, and the flag that ends the game. */

import { find, html } from "./dom.js";

export const CLOCKS = ["none", "1+0", "3+2", "10+5"]; // minutes + seconds for each turn
const TICK = 100; // ms

/** Return the clocks at the start of a game, or null for a game without clocks. */
export function clocksOf(name) {
  const [minutes, seconds] = name.split("+").map(Number);
  return name === "none" ? null : { left: [minutes * 60000, minutes * 60000], increment: seconds * 1000 };
}

/**
 * Run the clocks of a table. `side()` is the player whose clock runs, or null; `onFlag(player)` is
 * called once when a clock has run out.
 */
export function createClock({ table, side, onFlag }) {
  let last = performance.now();
  let running = null; // the side whose clock has run since the last call of `look`

  /** Subtract the time since the last call from the running clock. `done` is the player whose turn has just ended, or null. */
  function look(done = null) {
    const now = performance.now();
    const { clocks } = table;
    const player = clocks && running;
    if (player !== null) clocks.left[player] = Math.max(0, clocks.left[player] - (now - last));
    last = now;
    running = clocks && side();
    if (player !== null && !clocks.left[player]) onFlag(player);
    else if (player !== null && player === done) clocks.left[done] += clocks.increment;
    show();
  }

  function show() {
    for (const player of [0, 1]) {
      const element = find(`#clock-${player}`);
      const left = table.clocks?.left[player];
      if (!element || left === undefined) continue;
      element.textContent = words(left);
      element.classList.toggle("short", left < 10000);
    }
  }

  setInterval(() => look(), TICK);
  return { look };
}

/** Return the element of a clock for the card of a player, or null without clocks. */
export function clockFace(player, clocks) {
  return clocks ? html("span", { class: "clock", id: `clock-${player}`, role: "timer", "data-testid": `clock-${player}` }, words(clocks.left[player])) : null;
}

function words(left) {
  const seconds = left < 10000 ? (Math.ceil(left / 100) / 10).toFixed(1) : Math.ceil(left / 1000);
  const whole = Math.floor(seconds / 60);
  return left < 10000 ? seconds : `${whole}:${String(seconds - 60 * whole).padStart(2, "0")}`;
}
