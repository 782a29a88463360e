/** The editor of positions: a click draws an edge or removes it. */

import { edgeCount } from "./rules.js";

export function createEditor({ record, onChange }) {
  let on = false;

  function open() {
    const { drawn } = record.position;
    const start = [...Array(edgeCount(record.game)).keys()].filter((edge) => drawn[edge]);
    on = true;
    record.reset({ ...record.root, start, moves: [], joined: [], comments: {}, variations: [] });
  }

  function close() {
    if (!on) return;
    on = false;
    onChange();
  }

  function toggle(edge) {
    const { start } = record.game;
    const changed = start.includes(edge) ? start.filter((each) => each !== edge) : [...start, edge];
    record.reset({ ...record.root, start: changed.sort((a, b) => a - b), setUp: true });
  }

  return { isOn: () => on, open, close, toggle };
}
