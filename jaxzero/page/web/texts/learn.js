/** Texts of the rules, the lessons and the problems: [English, Chinese] each. */

import { boxes } from "./table.js";

const countedChains = ({ n }) => (Number(n) === 1 ? "There is 1 long chain" : `There are ${n || "no"} long chains`);

export const LEARN = {
  "learn.title": ["Four edges make a box. Small rules, deep game.", "四边成格，规则简单，奥妙无穷。"],
  "learn.lead": [
    "Dots and Boxes takes a minute to learn. Behind it lies one of the finest counting games: whoever understands chains beats whoever grabs boxes.",
    "点格棋一分钟就能学会，背后却是一门精妙的计数游戏：懂得链的人，总能胜过只顾占格的人。",
  ],
  "learn.play": ["Play now", "马上开始"],
  "learn.first": ["First lesson", "第一课"],
  "learn.rules": ["The rules in four pictures", "四幅图看懂规则"],
  "rule.1.title": ["Draw an edge", "画一条边"],
  "rule.1.text": ["Take turns. Join two neighbouring dots by a line.", "双方轮流，用线连接相邻的两个点。"],
  "rule.2.title": ["Close a box", "占一格"],
  "rule.2.text": ["Who draws the fourth side of a box owns it.", "谁画出格子的第四条边，格子就归谁。"],
  "rule.3.title": ["Move again", "再走一步"],
  "rule.3.text": ["Who closes a box must draw another edge at once.", "占格的一方必须马上再画一条边。"],
  "rule.4.title": ["Most boxes win", "多者为胜"],
  "rule.4.text": ["When every edge is drawn, the player with more boxes wins.", "所有边画完时，格子多的一方获胜。"],
  "learn.lessons": ["Lessons", "课程"],
  "learn.count": ["Lesson {number} of {all}", "第 {number} 课，共 {all} 课"],
  "lesson.lost": [
    ({ own, other }) => `${own === other ? "A draw" : "You lost"}, ${own} : ${other}. The start was right, but later boxes slipped away. Press Start again.`,
    ({ own, other }) => `您以 ${own} : ${other} ${own === other ? "战平" : "落败"}。开头是对的，但后来丢了格子。请重新开始。`,
  ],
  "learn.task": ["Your task", "任务"],
  "learn.done": ["done", "已完成"],
  "learn.next": ["Next lesson", "下一课"],
  "learn.again": ["Start again", "重新开始"],
  "learn.show": ["Show me", "给我看"],
  "learn.all": ["All lessons", "全部课程"],
  "learn.toGame": ["Play a game", "下一局"],
  "learn.score": ["You {own} : {other} opponent", "您 {own} : {other} 对方"],

  "lesson.close.title": ["Close a box", "占一格"],
  "lesson.close.text": [
    "One box has three of its four sides. Who draws the fourth side gets the box, and then moves again. A new edge may give the next box its third side: then it can be closed too.",
    "有一个格子已经画了三条边。谁画出第四条边就得到这个格子，并且再走一步。新画的边也可能是旁边格子的第三条边，那么旁边的格子也能占。",
  ],
  "lesson.close.task": ["Close both boxes that can be closed. Begin with the one that has three sides.", "占下两个可以占的格子。先占已有三条边的那个。"],
  "lesson.close.good": ["Two boxes in one turn. Each closed box gave you another move.", "一回合占了两格。每占一格都让您再走一步。"],
  "lesson.close.part": ["Closed, and it is still your move. The box beside it has three sides now.", "占下了，还是您走。旁边的格子现在也有三条边了。"],
  "lesson.close.bad": ["This edge closes no box. Look for the box with three sides.", "这条边没有占格。找一找有三条边的格子。"],

  "lesson.safe.title": ["Do not draw the third side", "别画第三条边"],
  "lesson.safe.text": [
    "A box with three sides is a present: your opponent closes it and moves again. So nobody likes to draw the third side. An edge that gives no box its third side is safe.",
    "有三条边的格子是一份礼物：对方占下它，还能再走一步。所以谁也不愿意画第三条边。不让任何格子出现第三条边的边，就是安全边。",
  ],
  "lesson.safe.task": ["Draw a safe edge. Only two edges of this position are safe.", "画一条安全边。这个局面只有两条边是安全的。"],
  "lesson.safe.good": ["Safe: no box has three sides, so your opponent has nothing to take.", "安全：没有格子有三条边，对方无格可占。"],
  "lesson.gives": [({ n }) => `Now your opponent can take ${boxes(n)}.`, "现在对方可以占 {n} 格。"],

  "lesson.chain.title": ["Chains", "链"],
  "lesson.chain.text": [
    "When no safe edge is left, the open boxes form chains: corridors of boxes with two sides each. Who draws an edge in a chain gives away the whole chain. If you must open one, open the shortest.",
    "安全边用完以后，剩下的格子连成链：每格都有两条边的走廊。谁在链里画一条边，就把整条链送给对方。如果必须打开一条链，就打开最短的。",
  ],
  "lesson.chain.task": ["You have no safe edge. Open the shortest chain.", "您已经没有安全边了。打开最短的链。"],
  "lesson.chain.good": [({ n }) => `You gave only ${boxes(n)}. Your opponent took it and now has to open the next chain for you.`, "您只送了 {n} 格。对方占下后，必须为您打开下一条链。"],
  "lesson.chain.bad": [({ n }) => `This gives away ${boxes(n)}. There is a shorter chain.`, "这样会送出 {n} 格。还有更短的链。"],

  "lesson.double.title": ["The double-cross", "双交"],
  "lesson.double.text": [
    "Your opponent has opened a chain of four for you. If you take all four boxes you must move next and open the last chain yourself. So take two, then draw the edge at the far end: two boxes are left that one edge closes. Your opponent gets them, but has to move again and opens the last chain for you. An edge that leaves such a choice to the other side is called loony.",
    "对方为您打开了一条四格的链。如果四格全占，接着就得您走，只好自己打开最后一条链。所以先占两格，然后画最远端的边：剩下的两格一笔就能占。对方得到这两格，却必须再走一步，为您打开最后一条链。把这种选择交给对方的边叫作疯着。",
  ],
  "lesson.double.task": ["Win the most boxes: take two boxes, leave two, and take the whole last chain.", "占最多的格子：占两格，留两格，再吃下整条最后的链。"],
  "lesson.double.good": ["The double-cross: you gave two boxes to win four. You kept control.", "这就是双交：舍两格，得四格。控制权一直在您手里。"],
  "lesson.double.part": ["Box taken. You move again: think about the last two boxes before you close the third.", "占下一格。您再走一步：在占第三格之前，想一想最后两格。"],
  "lesson.double.cross": ["That is the double-cross. Your opponent takes two boxes and must open the last chain. Take it.", "这就是双交。对方占下两格，然后必须打开最后的链。吃掉它吧。"],
  "lesson.double.bad": [
    "You took too many: now you have to open the last chain yourself. Leave the last two boxes with one stroke at the far end.",
    "占得太多了：现在您得自己打开最后的链。应该在最远端画一笔，留下最后两格。",
  ],
  "lesson.double.early": ["This leaves more than two boxes, or gives away the other chain. First take two boxes of the opened chain.", "这样留下了两格以上，或送出了另一条链。请先占打开的链中的两格。"],

  "lesson.rule.title": ["The long chain rule", "长链规则"],
  "lesson.rule.text": [
    "Control decides most games: who has it takes almost all boxes of the long chains (three boxes or more). So the players fight about the number of long chains. The rule: count the dots, the long chains, and the moves that closed two boxes at once (here none so far). If the sum is even, the first player gets control, else the second player. Here there are 16 dots, and you are the first player: you want an even number of long chains.",
    "控制权决定大多数对局：拥有它的一方几乎能吃下所有长链（三格以上）。所以双方争的是长链的数目。规则是：把点数、长链数和一笔占两格的次数（这里还没有）相加，和为偶数，先手得到控制权；和为奇数，后手得到。这里有 16 个点，您是先手：您希望长链的数目是偶数。",
  ],
  "lesson.rule.task": ["Draw the safe edge that makes the number of long chains right, then win the game.", "画出让长链数目正确的安全边，然后赢下这一局。"],
  "lesson.rule.good": [
    "Two long chains and 16 dots make 18: even, so the first player is in control. Your opponent has to open them, and you win.",
    "两条长链加 16 个点等于 18：偶数，先手拥有控制权。对方必须打开长链，您赢了。",
  ],
  "lesson.rule.part": ["Right: this makes two long chains. Your opponent runs out of safe edges. Play on and keep control.", "对：这样就有两条长链。对方的安全边先用完。继续走，保持控制权。"],
  "lesson.rule.bad": ["After this edge the count is wrong: you run out of safe edges first and have to open a long chain.", "走了这条边，数目就不对了：您先用完安全边，必须打开长链。"],
  "lesson.rule.lost": [
    "The count was right, but the boxes slipped away. Remember to leave the last two boxes of a long chain while another one waits.",
    "数目是对的，但格子溜走了。记住：还有另一条长链时，要留下这条链的最后两格。",
  ],

  "lesson.loop.title": ["Loops", "环"],
  "lesson.loop.text": ["Your opponent has opened a loop of six boxes. In a loop you keep control if you leave four boxes, not two.", "对方打开了一个六格的环。在环里，要留下四格而不是两格，才能保持控制权。"],
  "lesson.loop.task": ["Take two boxes, leave four with one edge in their middle, and take the whole last chain.", "占两格，在剩下四格的正中画一笔，然后吃下整条最后的链。"],
  "lesson.loop.good": ["You left four boxes and won a chain of six. Control costs four boxes in a loop and two in a chain.", "您留下四格，赢得六格的链。保持控制权的代价：环是四格，链是两格。"],
  "lesson.loop.part": ["Box taken, and you move again. The last four boxes are the ones to leave.", "占下一格，您再走一步。要留下的是最后四格。"],
  "lesson.loop.cross": ["Four boxes are left as two pairs. Your opponent takes them and must open the chain. Take it.", "四格分成两对留下了。对方占下后，必须打开那条链。吃掉它吧。"],
  "lesson.loop.bad": ["You took too many: now you have to open the chain yourself. Leave the last four boxes of the loop.", "占得太多了：现在您得自己打开那条链。应该留下环的最后四格。"],
  "lesson.loop.early": ["Not yet: first take two boxes of the loop. Then draw the edge in the middle of the other four.", "还不到时候：请先占环里的两格，再在另外四格的正中画一笔。"],

  "lesson.control.title": ["Control", "控制权"],
  "lesson.control.text": [
    "No safe edge is left, and you do not want to open a long chain first. Sacrifice the short chain in such a way that your opponent has to open one.",
    "安全边已经用完，而您不想先打开长链。把短链送出去，但要让对方接着不得不打开长链。",
  ],
  "lesson.control.task": ["Give the chain of two so that it cannot be handed back, then win the game.", "送出两格的链，并且让对方无法把它让回来，然后赢下这一局。"],
  "lesson.control.good": ["You gave boxes twice and still won. Control is worth more than a few boxes.", "您两次送格，仍然赢了。控制权比几个格子更值钱。"],
  "lesson.control.part": [
    "Right: after the middle edge, a hard-hearted one, your opponent can only take both boxes. Now it has to open a long chain: play on and keep control.",
    "对：画了中间的边（硬心着），对方只能把两格都占下，接着必须打开长链。继续走，保持控制权。",
  ],
  "lesson.control.bad": [
    "After this edge your opponent keeps control. Open the chain of two by its middle edge: an outer edge is half-hearted, because your opponent can leave the two boxes to you.",
    "走了这条边，控制权就在对方手里。应该画两格链中间的边：外侧的边是半心着，对方可以把这两格留给您。",
  ],
  "lesson.control.lost": ["The first edge was right, but then control was lost. Take one box of the chain of three and leave the last two.", "第一步是对的，可后来丢了控制权。三格的链占一格，留下最后两格。"],

  "lesson.quad.title": ["Quads", "四格环"],
  "lesson.quad.text": [
    "A loop of four boxes is a quad, and your opponent has opened one. To keep control you must leave all four boxes, so count first.",
    "对方打开了一个四格的环。要保持控制权，必须把四格全部留下，所以先数一数。",
  ],
  "lesson.quad.task": ["Count the last chain. Then take the quad, or leave it with its middle edge.", "数一数最后那条链，再决定：占下四格环，还是在正中画一笔把它留下。"],
  "lesson.quad.good": ["Four boxes given, five boxes won. If the chain had only three boxes, it would be right to take the quad.", "舍四格，得五格。如果那条链只有三格，就应该占下四格环。"],
  "lesson.quad.cross": ["All four are left. Your opponent takes them and must open the chain of five. Take it.", "四格都留下了。对方占下后，必须打开五格的链。吃掉它吧。"],
  "lesson.quad.bad": ["Now you get the four boxes, but your opponent gets the chain of five. Leave the quad with its middle edge.", "现在您得四格，对方却得到五格的链。应该在四格环的正中画一笔把它留下。"],
  "lesson.quad.early": ["This gives the chain away. There are only two choices: take the quad, or leave it.", "这样就送掉了那条链。只有两种选择：占下四格环，或者留下它。"],

  "lesson.battle.title": ["The fight for the chains", "长链之争"],
  "lesson.battle.text": [
    "You are the first player, and with 16 dots you want an even number of long chains. The last safe edge does not lead there, but a sacrifice does.",
    "您是先手，有 16 个点，所以希望长链的数目是偶数。最后的安全边做不到，但舍格可以做到。",
  ],
  "lesson.battle.task": ["Find the edge that gives two boxes and leaves two long chains, then win the game.", "找出送两格、留下两条长链的边，然后赢下这一局。"],
  "lesson.battle.good": [
    "You gave two boxes early and won control with them. Such a sacrifice before the chains are settled is called preemptive.",
    "您提前舍了两格，换来了控制权。在长链定形之前这样舍格，叫作“预先牺牲”。",
  ],
  "lesson.battle.part": [
    "Right: your opponent takes two boxes, and then two long chains are left. It has no safe edge: play on and keep control.",
    "对：对方占下两格，剩下两条长链，而它已经没有安全边了。继续走，保持控制权。",
  ],
  "lesson.battle.bad": [
    "After this edge your opponent decides how many long chains there are. Cut the two boxes in the middle, where the upper and the lower part are joined.",
    "走了这条边，长链的数目就由对方决定。应该从连接上下两部分的那两格中间切断。",
  ],
  "lesson.battle.lost": ["The sacrifice was right, but then control was lost. Leave the last two boxes of the first long chain.", "舍格是对的，可后来丢了控制权。第一条长链要留下最后两格。"],

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
  "train.wrong": ["Not the best: after this edge you end {n} boxes worse (your boxes minus your opponent’s). Better: {better}.", "不是最好的：这条边使净胜格数（己方减对方）少了 {n}。更好的选择：{better}。"],
  "train.counted": [(values) => `Right. ${countedChains(values)}.`, "对！长链一共有 {n} 条。"],
  "train.miscounted": [(values) => `Not quite. ${countedChains(values)}.`, "不对，长链一共有 {n} 条。"],

  "train.reason.count": ["Loops and shorter chains do not count.", "环和更短的链不算。"],
  "train.reason.take_all": [
    "Take everything here. Then you have to move first in the rest, but that costs less than leaving two boxes, or four of a loop.",
    "这里应该全部占下：接着在别处先走的代价，小于留下这几格的代价。",
  ],
  "train.reason.leave_two": ["Leave the last two boxes with one stroke. Your opponent takes them and has to move first in the rest.", "用一笔留下最后两格。对方占下后，必须在别处先走。"],
  "train.reason.leave_four": ["Leave the last four boxes of the loop as two pairs. Your opponent takes them and has to move first in the rest.", "把环的最后四格分成两对留给对方。对方占下后，必须在别处先走。"],
  "train.reason.open_smallest": ["You have to open something, and here the smallest costs least.", "您必须打开一处，这里打开最小的代价最小。"],
  "train.reason.middle_edge": [
    "A chain of two costs least here, but only by its middle edge. After an outer edge, your opponent can hand both boxes back, and you have to move first again.",
    "这里打开两格的链代价最小，但只能画它中间的边：若画外侧的边，对方可以把两格都留给您，您又得在别处先走。",
  ],
  "train.reason.open_loop": [
    "Here the loop comes before a chain that is not longer. To keep control, your opponent must leave four boxes of a loop, but only two of a chain.",
    "这里应该先打开环，而不是同样长或更短的链：要保持控制权，对方在环里必须留下四格，在链里只需留下两格。",
  ],
};
