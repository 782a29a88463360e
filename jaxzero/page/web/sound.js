/** Short quiet tones for what happens on the board, and a vibration where there is one. */

import { settings } from "./settings.js";

const LOUDNESS = 0.06; // of 1
const LENGTH = 0.12; // seconds of a tone
const TONES = { edge: [330], box: [523, 659], end: [523, 659, 784] }; // Hz, one after the other
const SHAKES = { edge: [8], box: [20], end: [20, 60, 40] }; // ms on and off

let audio = null;

/** Let something be heard: "edge", "box" or "end". Browsers refuse it before the first gesture. */
export function sound(name) {
  if (!settings.sound || !navigator.userActivation?.hasBeenActive) return;
  navigator.vibrate?.(SHAKES[name]);
  audio ??= new AudioContext();
  audio.resume();
  TONES[name].forEach((pitch, index) => tone(pitch, audio.currentTime + index * LENGTH));
}

function tone(pitch, start) {
  const source = audio.createOscillator();
  const volume = audio.createGain();
  source.frequency.value = pitch;
  volume.gain.setValueAtTime(LOUDNESS, start);
  volume.gain.exponentialRampToValueAtTime(0.001, start + LENGTH);
  source.connect(volume).connect(audio.destination);
  source.start(start);
  source.stop(start + LENGTH);
}
