// SPDX-License-Identifier: Apache-2.0
// Draws a timeline and handles input: wheel and + − zoom, dragging and Shift with arrows move, arrows select a call, a click or Enter shows
// its line.
"use strict";

const narrow = window.innerWidth < 700;  // a phone: fewer calls at once, all of them visible
const laneHeight = 26, axisHeight = 22, labelWidth = narrow ? 96 : 148, plotWidth = narrow ? 330 : 1000;

class TimelineView {
  constructor(group) {
    this.group = group;
    group.lanes.forEach((lane) => { lane.observed_calls = lane.observed !== false; });
    this.timed = group.lanes.every((lane) => lane.calls.every((call) => call.begin !== undefined));
    this.kinds = colourKinds(group);
    this.chosen = null;
    this.height = axisHeight + group.lanes.length * laneHeight + 4;
    this.image = svg("svg", {class: "lanes", viewBox: `0 0 ${labelWidth + plotWidth} ${this.height}`, width: labelWidth + plotWidth, height: this.height, tabindex: "0",
      role: "application", "aria-label": `calls of group ${groupName(group)} by rank: arrows choose a call, Enter shows its line, plus and minus zoom`});
    this.about = el("div", {class: "call-about", role: "status"});
    this.use(this.timed);
    this.listen();
  }

  use(byTime) {
    this.timeline = timelineOf(this.group, byTime);
    this.draw();
  }

  x(at) {
    const {from, to} = this.timeline.view;
    return labelWidth + plotWidth * (at - from) / (to - from);
  }

  draw() {
    const {view, byTime} = this.timeline;
    const clip = `clip-${this.group.number}`;
    const plot = svg("g", {"clip-path": `url(#${clip})`});
    for (const tick of ticks(view.from, view.to, byTime)) {
      if (this.x(tick.at) - textWidth(tick.text, 11) / 2 < labelWidth) continue;  // its text would not fit
      plot.append(svg("path", {class: "grid", d: `M${this.x(tick.at)} ${axisHeight - 4}V${this.height}`}),
        svg("text", {class: "tick", x: this.x(tick.at), y: 12, "text-anchor": "middle"}, tick.text));
    }
    this.image.replaceChildren(svg("defs", {}, svg("clipPath", {id: clip}, svg("rect", {x: labelWidth, y: 0, width: plotWidth, height: this.height})),
      svg("pattern", {id: `hatch-${this.group.number}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
        svg("path", {class: "hatch", d: "M0 0V6"}))), plot);
    this.group.lanes.forEach((lane, index) => this.drawLane(lane, index, plot));
  }

  drawLane(lane, index, plot) {
    const y = axisHeight + index * laneHeight;
    this.image.append(svg("text", {class: isCulprits(lane.ranks) ? "lane-name culprit" : "lane-name", x: labelWidth - 10, y: y + 17, "text-anchor": "end"},
      svg("title", {}, said(lane.ranks)), cut(shortly(lane.ranks), narrow ? 13 : 21)));
    plot.append(svg("path", {class: "row", d: `M${labelWidth} ${y + laneHeight}H${labelWidth + plotWidth}`}));
    const bars = barsOf(lane, this.timeline);
    bars.forEach((bar, at) => this.drawBar(lane, {...bar, next: bars[at + 1], index, at}, y, plot));
    const missed = missedCall(this.group, lane, this.timeline);
    if (missed) this.drawMissed(missed, y, plot);
    else if (!lane.calls.length) {
      plot.append(svg("text", {class: "bar-text beside", x: labelWidth + 8, y: y + 17}, lane.observed_calls ? "no call here" : "no record of its calls"));
    }
  }

  drawMissed(missed, y, plot) {
    const x = this.x(missed.from), width = Math.max(this.x(missed.to) - x, 12);
    plot.append(svg("g", {class: "never"}, svg("title", {}, missed.text), svg("rect", {x, y: y + 4, width, height: laneHeight - 8, rx: 3, fill: `url(#hatch-${this.group.number})`}),
      svg("text", {class: "bar-text", x: Math.max(x, labelWidth) + 6, y: y + 17}, missed.text)));
  }

  drawBar(lane, bar, y, plot) {
    const {call} = bar;
    const x = this.x(bar.from), width = Math.max(3, this.x(bar.to) - x);
    if (x > labelWidth + plotWidth || x + width < labelWidth) return;
    const left = Math.max(x, labelWidth), inside = Math.min(x + width, labelWidth + plotWidth) - left;
    const chosen = this.chosen && this.chosen.index === bar.index && this.chosen.at === bar.at;
    const classes = ["call", call.over ? "over" : "open", `c${this.kinds.get(lineOf(call))}`, call.sequence === this.group.diverges ? "diverges" : "", chosen ? "chosen" : ""];
    const drawn = svg("g", {class: classes.filter(Boolean).join(" ")}, svg("title", {}, describeCall(this.group, lane, call)),
      svg("rect", {x, y: y + 4, width, height: laneHeight - 8, rx: 3}));
    drawn.dataset.at = `${bar.index}.${bar.at}`;
    const full = barText(this.group, call), name = `${call.operation || "?"} #${call.sequence}`;
    const beside = (bar.next ? this.x(bar.next.from) : labelWidth + plotWidth) - (x + width) - 8;
    const fitting = [full, name, call.operation || "?"].find((text) => textWidth(text, 11) + 10 < inside);
    if (fitting) drawn.append(svg("text", {class: "bar-text", x: left + 6, y: y + 17}, fitting));
    else if (textWidth(name, 11) < beside && x >= labelWidth) drawn.append(svg("text", {class: "bar-text beside", x: x + width + 4, y: y + 17}, name));
    plot.append(drawn);
  }

  /** Zooms by `factor` around a point of the axis; at most a tenth of the whole beyond its ends, and never to zero width. */
  zoom(factor, around) {
    const {view, whole} = this.timeline;
    const smallest = (whole.to - whole.from) / 5000;
    const from = around - (around - view.from) * factor, to = around + (view.to - around) * factor;
    if (to - from < smallest) return;
    this.show(from, to);
  }

  show(from, to) {
    const {view, whole} = this.timeline;
    const span = Math.min(to - from, whole.to - whole.from);
    view.from = Math.max(whole.from, Math.min(from, whole.to - span));
    view.to = view.from + span;
    this.draw();
  }

  pan(share) {
    const {view} = this.timeline;
    const by = (view.to - view.from) * share;
    this.show(view.from + by, view.to + by);
  }

  at(event) {
    const box = this.image.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * (labelWidth + plotWidth) - labelWidth) / plotWidth;
    const {view} = this.timeline;
    return view.from + (view.to - view.from) * Math.max(0, Math.min(1, share));
  }

  choose(index, at) {
    const lane = this.group.lanes[index];
    if (!lane || !lane.calls[at]) return;
    this.chosen = {index, at};
    const bar = barsOf(lane, this.timeline)[at];
    const {view} = this.timeline;
    if (bar.from < view.from || bar.from > view.to) this.show(bar.from - (view.to - view.from) / 2, bar.from + (view.to - view.from) / 2);
    else this.draw();
    this.describe(lane, lane.calls[at]);
  }

  describe(lane, call) {
    const site = siteOf(call);
    this.about.replaceChildren(el("div", {}, describeCall(this.group, lane, call), " ", site ? placeLink(site) : null), site ? codeBlock(site.file, site.line) || "" : "");
  }

  keyDown(event) {
    const {view, home, whole} = this.timeline;
    const middle = (view.from + view.to) / 2;
    const {index, at} = this.chosen || {index: 0, at: this.group.lanes[0].calls.length};
    const acts = {
      "+": () => this.zoom(0.7, middle), "=": () => this.zoom(0.7, middle), "-": () => this.zoom(1 / 0.7, middle),
      ArrowLeft: () => (event.shiftKey ? this.pan(-0.2) : this.choose(index, at - 1)), ArrowRight: () => (event.shiftKey ? this.pan(0.2) : this.choose(index, at + 1)),
      ArrowUp: () => this.choose(index - 1, this.sameCall(index, at, index - 1)), ArrowDown: () => this.choose(index + 1, this.sameCall(index, at, index + 1)),
      w: () => this.zoom(0.7, middle), s: () => this.zoom(1 / 0.7, middle), a: () => this.pan(-0.2), d: () => this.pan(0.2), // as in Perfetto
      Home: () => this.show(home.from, home.to), End: () => this.show(whole.from, whole.to), Enter: () => this.choose(index, at),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  /** The call of another lane with the same number, or its last one before. */
  sameCall(index, at, other) {
    const calls = (this.group.lanes[other] || {calls: []}).calls;
    const wanted = (this.group.lanes[index].calls[at] || {sequence: Infinity}).sequence;
    const before = calls.filter((call) => call.sequence <= wanted).length - 1;
    return Math.max(0, before);
  }

  listen() {
    this.image.addEventListener("keydown", (event) => this.keyDown(event));
    this.image.addEventListener("wheel", (event) => {
      // Scrolling the page must not zoom the chart: it must have been selected.
      if (document.activeElement !== this.image && !event.ctrlKey) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(Math.sign(event.deltaX) * 0.1);
      else this.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, this.at(event));
    }, {passive: false});
    this.image.addEventListener("pointerdown", (event) => {
      this.drag = {x: event.clientX, moved: false, from: this.timeline.view.from, to: this.timeline.view.to};
      this.image.setPointerCapture(event.pointerId);
    });
    this.image.addEventListener("pointermove", (event) => {
      if (!this.drag || (Math.abs(event.clientX - this.drag.x) < 4 && !this.drag.moved)) return;
      this.drag.moved = true;
      const perPixel = (this.drag.to - this.drag.from) / (this.image.getBoundingClientRect().width * plotWidth / (labelWidth + plotWidth));
      const by = (this.drag.x - event.clientX) * perPixel;
      this.show(this.drag.from + by, this.drag.to + by);
    });
    this.image.addEventListener("pointerup", (event) => {
      const moved = this.drag && this.drag.moved;
      this.drag = null;
      const under = document.elementFromPoint(event.clientX, event.clientY);
      const bar = under && under.closest ? under.closest("g.call") : null;
      this.image.focus({preventScroll: true});
      if (!moved && bar) this.choose(...bar.dataset.at.split(".").map(Number));
    });
    this.image.addEventListener("pointercancel", () => { this.drag = null; });
  }

  tools() {
    const middle = () => (this.timeline.view.from + this.timeline.view.to) / 2;
    const axis = this.timed ? [button("By call number", (event) => {
      this.use(!this.timeline.byTime);
      event.target.textContent = this.timeline.byTime ? "By call number" : "By time";
    }, {class: "quiet axis"})] : [];
    return el("div", {class: "bar tools"}, button("+", () => this.zoom(0.6, middle()), {"aria-label": "zoom in", class: "quiet"}),
      button("−", () => this.zoom(1 / 0.6, middle()), {"aria-label": "zoom out", class: "quiet"}),
      button("Newest", () => this.show(this.timeline.home.from, this.timeline.home.to), {class: "quiet newest"}),
      button("All", () => this.show(this.timeline.whole.from, this.timeline.whole.to), {class: "quiet all"}), ...axis);
  }

  legend() {
    const kinds = [...this.kinds].slice(0, 12);
    return el("div", {class: "legend small"}, ...kinds.map(([kind, colour]) => el("span", {}, el("i", {class: `c${colour}`}), kind)),
      this.kinds.size > kinds.length ? el("span", {class: "faint"}, `and ${this.kinds.size - kinds.length} more lines`) : null);
  }
}

function drawTimelineOf(group, number) {
  group.number = number;
  const known = report.groups.find((one) => one.id === group.group) || {id: group.group};
  const view = new TimelineView({...group, id: group.group, name: known.name});
  const about = group.diverges !== undefined ? el("span", {class: "guilty small"}, `ranks differ at #${group.diverges}`) : el("span", {class: "faint small"}, "the ranks agree");
  return el("div", {class: "card timeline"}, el("div", {class: "finding-head"}, el("h3", {}, groupName(known), " ", about), view.tools()), el("div", {class: "scroll"}, view.image),
    view.legend(), view.about, group.left_out ? el("div", {class: "faint small"}, `${counted(group.left_out)} more ranks are left out`) : null);
}

function drawTimeline() {
  if (!report.lanes.length) return [];
  const [differ, agree] = [report.lanes.filter((group) => group.diverges !== undefined), report.lanes.filter((group) => group.diverges === undefined)];
  const shown = differ.length ? differ : agree.slice(0, 1);
  const folded = report.lanes.filter((group) => !shown.includes(group));
  const hint = "Click a bar to see its line. After a click: wheel, or W and S, to zoom; drag, or A and D, to move; arrows choose a call.";
  return [el("p", {class: "faint small noprint"}, hint), ...shown.map((group) => drawTimelineOf(group, report.lanes.indexOf(group))),
    folded.length ? drawnLater(`${folded.length} more ${folded.length === 1 ? "group agrees" : "groups agree"}`,
      () => folded.map((group) => drawTimelineOf(group, report.lanes.indexOf(group)))) : null].filter(Boolean);
}
