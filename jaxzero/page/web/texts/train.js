/** Texts of the trainer: [English, Chinese] each. */

const counted = ({ n }) => (Number(n) === 1 ? "There is 1 long chain" : `There are ${n || "no"} long chains`);

export const TRAIN = {
  "train.title": ["Train", "练习"],
  "train.lead": ["Problems without end, each checked by the exact solver.", "题目无穷无尽，每一道都由精确求解器验证。"],
  "train.grade": ["Grade", "难度"],
  "train.grade.0": ["Easy", "简单"],
  "train.grade.1": ["Medium", "中等"],
  "train.grade.2": ["Hard", "困难"],
  "train.streak": ["Solved in a row: {n}", "连续解出：{n} 题"],
  "train.next": ["Next problem", "下一题"],
  "train.all": ["All themes", "全部主题"],

  "train.chains.title": ["Count the chains", "数长链"],
  "train.chains.text": ["See at once how many long chains a position has.", "一眼看出局面里有几条长链。"],
  "train.handback.title": ["Take all or hand back", "全占还是让出"],
  "train.handback.text": ["A chain or a loop is open. Do you take everything or leave the last boxes?", "链或环已经打开：全部占下，还是留下最后几格？"],
  "train.parity.title": ["The right safe edge", "选对安全边"],
  "train.parity.text": ["A few safe edges are left, and only some of them are right.", "安全边所剩不多，只有一部分是对的。"],
  "train.loops.title": ["Loops", "环"],
  "train.loops.text": ["Endgames with loops: what do you open, and when do you leave four boxes?", "有环的残局：该打开哪里？什么时候留下四格？"],
  "train.opening.title": ["Early moves", "开局阶段"],
  "train.opening.text": ["Early positions on 5×5, solved to the end of the game.", "5×5 的前期局面，已经精确求解到终局。"],
  "train.berlekamp.title": ["Berlekamp’s problems", "伯利坎普的题目"],
  "train.berlekamp.text": ["Problems from “The Dots and Boxes Game”, the classic book.", "选自经典著作《The Dots and Boxes Game》。"],

  "train.question.waiting": ["A problem is on its way …", "正在出题……"],
  "train.question.edge": ["It is your move. Please draw the best edge.", "轮到您走，请画出最好的一条边。"],
  "train.question.count": ["How many long chains (three boxes or more) do you see?", "您看到几条长链（三格或更多）？"],

  "train.answer": ["{verdict} {reason}", "{verdict}{reason}"],
  "train.right": ["Right: no edge is better.", "对！没有比这更好的边。"],
  "train.wrong": [
    "Not the best: after this edge you end {n} boxes worse (your boxes minus your opponent’s). Better: {better}.",
    "不是最好的：这条边使净胜格数（己方减对方）少了 {n}。更好的选择：{better}。",
  ],
  "train.counted": [(values) => `Right. ${counted(values)}.`, "对！长链一共有 {n} 条。"],
  "train.miscounted": [(values) => `Not quite. ${counted(values)}.`, "不对，长链一共有 {n} 条。"],

  "train.reason.count": ["Loops and shorter chains do not count.", "环和更短的链不算。"],
  "train.reason.take_all": [
    "Take everything here. Then you have to move first in the rest, but that costs less than leaving two boxes, or four of a loop.",
    "这里应该全部占下：接着在别处先走的代价，小于留下这几格的代价。",
  ],
  "train.reason.leave_two": [
    "Leave the last two boxes with one stroke. Your opponent takes them and has to move first in the rest.",
    "用一笔留下最后两格。对方占下后，必须在别处先走。",
  ],
  "train.reason.leave_four": [
    "Leave the last four boxes of the loop as two pairs. Your opponent takes them and has to move first in the rest.",
    "把环的最后四格分成两对留给对方。对方占下后，必须在别处先走。",
  ],
  "train.reason.parity": [
    "Safe edges decide how many long chains there will be, and so who has to open the first one.",
    "安全边决定长链的数目，也就决定了谁必须先打开长链。",
  ],
  "train.reason.open_smallest": ["You have to open something, and here the smallest costs least.", "您必须打开一处，这里打开最小的代价最小。"],
  "train.reason.open_loop": [
    "Here the loop comes before a smaller chain. To keep control, your opponent must leave four boxes of a loop, but only two of a chain.",
    "这里应该先打开环，而不是更小的链：要保持控制权，对方在环里必须留下四格，在链里只需留下两格。",
  ],
};
