// Where labels lie between the axis and the lanes: in rows, none upon another, and none beyond the edges. Nothing is drawn here.
'use strict';

// `marks` are in the order of time. `px` tells where one is, `name` what its label says; `many` names so many marks of several names.
// Gives boxes { left, width, row, px, end, text, marks }: each mark belongs to one of them.
// Marks that are too close for labels of their own share one, which counts them. Row 0 is the one next to the lanes.
function layLabels(marks, { left, right, rows, px, name, many, measure, widest = 132, padding = 12, gap = 3 }) {
  const room = Math.min(Math.ceil(measure(many(9999))) + padding, Math.max(right - left, 1));
  const free = new Array(rows).fill(-Infinity), boxes = [];
  const fitting = (text, most) => {
    if (measure(text) <= most) return text;
    let end = text.length;
    while (end > 1 && measure(text.slice(0, end) + '…') > most) end--;
    return text.slice(0, end) + '…';
  };
  // The lowest row that is free there.
  const put = (some, text, least) => {
    const at = Math.round(px(some[0]));
    const said = fitting(text, Math.min(widest, right - left) - padding);
    const width = Math.max(Math.ceil(measure(said)) + padding, least);
    const from = Math.max(left, Math.min(at, right - width));
    const row = free.findIndex((taken) => taken <= from);
    if (row < 0) return false;
    free[row] = from + width + gap;
    boxes.push({ left: from, width, row, px: at, end: at, text: said, marks: some });
    return true;
  };
  for (let n = 0; n < marks.length;) {
    const reach = Math.min(px(marks[n]), right - room) + room + gap;
    let next = n + 1;
    while (next < marks.length && px(marks[next]) < reach) next++;
    const some = marks.slice(n, next);
    // As few as there are rows have a label each.
    const alone = some.length <= rows;
    const group = alone ? [some[0]] : some;
    if (!put(group, alone ? name(some[0]) : many(some.length), alone ? 0 : room)) boxes.at(-1).marks.push(...group);
    n += group.length;
  }
  for (const box of boxes) {
    if (box.marks.length === 1) continue;
    box.end = Math.round(px(box.marks.at(-1)));
    const names = new Set(box.marks.map(name)), one = `${box.marks.length} × ${name(box.marks[0])}`;
    const said = names.size === 1 && measure(one) <= box.width - padding ? one : many(box.marks.length);
    box.text = fitting(said, box.width - padding);
  }
  return boxes;
}
