// SPDX-License-Identifier: Apache-2.0
// Which ranks wait for which: boxes from left to right, an arrow with its reason from each box to those it waits for. The boxes are already
// merged: a thousand ranks in one all_reduce are one box.
"use strict";

const boxHeight = 46, gapY = 34, mostDrawn = 24;
const textWidth = (text, size) => text.length * size * 0.56;

/** The number of steps to the end of the waits; in a cycle, to where it was entered. */
function levels(boxes) {
  const level = (box, onPath) => {
    if (box.level !== undefined || onPath.has(box)) return box.level || 0;
    onPath.add(box);
    box.level = Math.max(0, ...box.out.map((arrow) => level(arrow.to, onPath) + 1));
    return box.level;
  };
  // Ranks that wait and are not culprits are on the left.
  [...boxes].sort((a, b) => Boolean(a.culprit) - Boolean(b.culprit)).forEach((box) => level(box, new Set()));
}

function pictureOfWaits() {
  const boxes = report.waits.boxes.map((box) => ({...box, out: [], into: []}));
  const arrows = report.waits.arrows.filter((arrow) => arrow.from !== arrow.to).map((arrow) => ({...arrow, from: boxes[arrow.from], to: boxes[arrow.to]}));
  for (const arrow of arrows) {
    arrow.from.out.push(arrow);
    arrow.to.into.push(arrow);
  }
  return {boxes, arrows};
}

const whyOf = (arrow) => `waits in ${arrow.why.join("; ")}`;

/** Columns of boxes; each column is centred. */
function placeBoxes(boxes, arrows) {
  levels(boxes);
  const last = Math.max(...boxes.map((box) => box.level));
  const columns = Array.from({length: last + 1}, (_, level) => boxes.filter((box) => box.level === last - level)).filter((column) => column.length);
  const reason = Math.min(330, Math.max(60, ...arrows.map((arrow) => textWidth(arrow.why.join("; "), 11) + 50)));
  const tallest = Math.max(...columns.map((column) => column.length)) * (boxHeight + gapY);
  let x = 8;
  for (const column of columns) {
    const width = Math.max(110, ...column.map((box) => Math.min(300, textWidth(box.label, 13) + 40)));
    column.forEach((box, row) => {
      Object.assign(box, {x, width, y: 4 + (tallest - column.length * (boxHeight + gapY)) / 2 + gapY / 2 + row * (boxHeight + gapY)});
    });
    x += width + reason;
  }
  return {width: x - reason + 8, height: tallest + 8};
}

/** Left to right: straight; right to left: below; if there are both, one above the other. */
function pathOf(arrow) {
  const {from, to} = arrow;
  const both = to.out.some((other) => other.to === from);
  if (from.x + from.width <= to.x) {
    const shift = both ? -11 : 0;
    const [x, y, u, v] = [from.x + from.width, from.y + boxHeight / 2 + shift, to.x, to.y + boxHeight / 2 + shift];
    const bend = (u - x) / 2;
    return {d: `M${x} ${y}C${x + bend} ${y} ${u - bend} ${v} ${u} ${v}`, x: (x + u) / 2, y: (y + v) / 2 - 6};
  }
  if (to.x + to.width <= from.x) {
    const shift = both ? 11 : 0;
    const [x, y, u, v] = [from.x, from.y + boxHeight / 2 + shift, to.x + to.width, to.y + boxHeight / 2 + shift];
    const bend = (x - u) / 2;
    return {d: `M${x} ${y}C${x - bend} ${y} ${u + bend} ${v} ${u} ${v}`, x: (x + u) / 2, y: (y + v) / 2 + 15};
  }
  const [down, low] = from.y < to.y ? [1, boxHeight] : [-1, 0];
  const x = from.x + from.width / 2 + 14 * down, y = from.y + low, v = to.y + boxHeight - low;
  return {d: `M${x} ${y}L${x} ${v}`, x: x + 8, y: (y + v) / 2 + 4, start: true};
}

function tips() {
  return svg("defs", {}, ...["tip", "tip-of-cycle"].map((id) =>
    svg("marker", {id, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto"},
      svg("path", {d: "M0 0 8 4 0 8z"}))));
}

function drawBox(box) {
  const short = cut(box.label, Math.floor((box.width - 24) / 7.3));
  const about = box.culprit ? "culprit" : box.out.length ? "waits" : "does not wait";
  return svg("g", {class: box.culprit ? "box culprit" : "box"}, svg("title", {}, [box.ranks ? said(box.ranks) : box.label, ...box.out.map(whyOf)].join("\n")),
    svg("rect", {x: box.x, y: box.y, width: box.width, height: boxHeight, rx: 7}), svg("text", {x: box.x + 12, y: box.y + 20}, short),
    svg("text", {class: "why", x: box.x + 12, y: box.y + 36}, about));
}

function drawArrow(arrow) {
  const path = pathOf(arrow);
  const group = svg("g", {class: arrow.cycle ? "arrow cycle" : "arrow"}, svg("title", {}, `${arrow.from.label} → ${arrow.to.label}: ${arrow.why.join("; ")}`),
    svg("path", {class: "edge", "marker-end": arrow.cycle ? "url(#tip-of-cycle)" : "url(#tip)", d: path.d}));
  group.append(svg("text", {class: "why", x: path.x, y: path.y, "text-anchor": path.start ? "start" : "middle"}, cut(arrow.why.join("; "), 46)));
  return group;
}

function drawWaits() {
  const {boxes, arrows} = pictureOfWaits();
  if (!arrows.length) return [];
  const listed = el("ul", {}, ...arrows.map((arrow) => el("li", {}, `${arrow.from.label} → ${arrow.to.label}: ${arrow.why.join("; ")}`)));
  if (boxes.length > mostDrawn) return [el("div", {class: "card"}, listed)];
  const size = placeBoxes(boxes, arrows);
  const image = svg("svg", {class: size.width > 640 ? "waits wide" : "waits", viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height, role: "img",
    "aria-label": "who waits for whom"}, tips(), ...arrows.map(drawArrow), ...boxes.map(drawBox));
  const circle = arrows.some((arrow) => arrow.cycle) ? el("p", {class: "faint small"}, "Red arrows close a circle: none of these ranks can continue before another one does.") : null;
  return [el("div", {class: "card scroll"}, image, circle, el("details", {}, el("summary", {}, "As a list"), listed))];
}
