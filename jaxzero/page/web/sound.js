/** Short quiet tones for events on the board. */

import { settings } from "./settings.js";

const LOUDNESS = 0.06; // gain; 1 is full volume
const LENGTH = 0.12; // seconds of a tone
const TONES = { edge: [330], box: [523, 659], end: [523, 659, 784] }; // Hz, one after the other

let audio = null;

/** Play "edge", "box" or "end". Browsers refuse sound before the first gesture of the person. */
export function sound(name) {
  if (!settings.sound || !navigator.userActivation?.hasBeenActive) return;
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
