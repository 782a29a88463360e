/** Words that count, in English. */

const counted = (one, many) => (n) => (Number(n) === 1 ? `1 ${one}` : `${n} ${many}`);

export const boxes = counted("box", "boxes");
export const edges = counted("safe edge", "safe edges");
