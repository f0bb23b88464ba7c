// SPDX-License-Identifier: Apache-2.0
// Lanes: one row for each rank (or ranks that did the same), its collectives from left to right, the place where the ranks part marked.
// By time where every call has one, else by sequence number.
"use strict";

/** Left and width of each call in 0…1. A call that is not over lasts to the right edge. */
function layLane(calls, scale) {
  return calls.map((call, index) => {
    if (!scale.byTime) return {from: (call.sequence - scale.first) / scale.span, to: (call.sequence + 0.9 - scale.first) / scale.span};
    const next = calls[index + 1];
    const end = call.end ?? (call.over ? Math.min(call.begin + scale.span / 200, next ? next.begin : Infinity) : scale.last);
    return {from: (call.begin - scale.first) / scale.span, to: (Math.max(end, call.begin) - scale.first) / scale.span};
  });
}

function laneScale(group) {
  const calls = group.lanes.flatMap((lane) => lane.calls);
  const byTime = calls.every((call) => call.begin !== undefined);
  const starts = calls.map((call) => (byTime ? call.begin : call.sequence));
  const ends = calls.map((call) => (byTime ? call.end ?? call.begin : call.sequence + 1));
  const first = Math.min(...starts);
  let last = Math.max(...ends, ...starts);
  if (byTime && calls.some((call) => !call.over)) last += Math.max(0.001, (last - first) * 0.15);
  return {byTime, first, last, span: Math.max(last - first, 1e-6)};
}

function describeCall(lane, call) {
  const site = call.site ? ` at ${place(call.site)}${call.site.function ? ` in ${call.site.function}` : ""}` : "";
  const when = call.begin !== undefined ? ` · ${call.begin.toFixed(3)} s` : "";
  const took = call.end !== undefined && call.begin !== undefined ? ` for ${((call.end - call.begin) * 1000).toFixed(1)} ms` : call.over ? "" : " · not finished";
  return `${said(lane.ranks)}: ${call.operation} #${call.sequence}${site}${when}${took}`;
}

function drawLanes(group) {
  const left = 150, width = 900, row = 22, top = 18;
  const scale = laneScale(group);
  const height = top + group.lanes.length * row + 6;
  const image = svg("svg", {viewBox: `0 0 ${left + width + 10} ${height}`, width: left + width + 10, role: "img", class: "lanes",
    "aria-label": `calls of group ${group.group} by rank`});
  image.append(svg("text", {class: "why", x: left, y: 11},
    scale.byTime ? `${(scale.last - scale.first).toFixed(3)} s from left to right` : `#${scale.first} … #${scale.last - 1}`));
  group.lanes.forEach((lane, index) => {
    const y = top + index * row;
    image.append(svg("text", {class: isCulprits(lane.ranks) ? "why culprit" : "why", x: 0, y: y + 14}, cut(said(lane.ranks), 22)));
    const spans = layLane(lane.calls, scale);
    lane.calls.forEach((call, at) => {
      const classes = ["call", call.over ? "over" : "open", call.sequence === group.diverges ? "diverges" : ""].join(" ").trim();
      image.append(svg("g", {class: classes}, svg("title", {}, describeCall(lane, call)),
        svg("rect", {x: left + width * spans[at].from, y: y + 3, width: Math.max(2, width * (spans[at].to - spans[at].from)), height: row - 6, rx: 2})));
    });
  });
  return image;
}

function drawTimeline() {
  if (!report.lanes.length) return [el("p", {class: "faint"}, "No collectives were recorded.")];
  const legend = "A bar is a call, from its start to its end; a dashed one has not ended and is drawn short. Point at it for its line.";
  return [el("p", {class: "faint small"}, legend), ...report.lanes.map((group) => {
    const name = (report.groups.find((one) => one.id === group.group) || {}).name || group.group;
    const about = group.diverges !== undefined ? `the ranks part at #${group.diverges}, outlined` : "the ranks agree";
    return el("div", {class: "card"}, el("h3", {}, name, " ", el("span", {class: "faint small"}, about)), drawLanes(group),
      group.left_out ? el("div", {class: "faint small"}, `${group.left_out} more ranks are left out`) : null);
  })];
}
