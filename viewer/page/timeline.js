// SPDX-License-Identifier: Apache-2.0
// The calls of a group by rank as bars: the position and colour of each. timeline_view.js draws them and handles mouse and keyboard.
"use strict";

const colours = 8;  // as many as in page.css
const callsShown = window.innerWidth < 700 ? 3 : 8;  // before the relevant one, when the page opens
const siteOf = (call) => (call.site === undefined ? null : report.sites[call.site]);
const lineOf = (call) => `${call.operation || "?"} ${siteOf(call) ? place(siteOf(call)) : ""}`.trim();

/** A colour for each operation at each line, in the order of their first calls. */
function colourKinds(group) {
  const kinds = new Map();
  for (const lane of group.lanes) {
    for (const call of lane.calls) {
      const kind = lineOf(call);
      if (!kinds.has(kind)) kinds.set(kind, kinds.size % colours);
    }
  }
  return kinds;
}

const startOf = (call, byTime) => (byTime ? call.begin : call.sequence);

/** The part of the axis that is shown first: the newest calls, or those around the position at which ranks differ, with room for bars that have no
    end. */
function firstView(group, byTime) {
  const calls = group.lanes.flatMap((lane) => lane.calls);
  const middle = group.diverges ?? Math.max(...calls.map((call) => call.sequence));
  const near = calls.filter((call) => call.sequence > middle - callsShown);
  const begins = (near.length ? near : calls).map((call) => startOf(call, byTime));
  const from = Math.min(...begins);
  const last = Math.max(...(near.length ? near : calls).map((call) => (byTime ? call.end ?? call.begin : call.sequence + 1)));
  const room = byTime && calls.some((call) => !call.over) ? 0.35 : 0.02;
  return {from: from - (last - from || 1) * 0.01, to: last + (last - from || 1) * room};
}

function timelineOf(group, byTime) {
  const calls = group.lanes.flatMap((lane) => lane.calls);
  const view = firstView(group, byTime);
  const whole = {from: Math.min(view.from, ...calls.map((call) => startOf(call, byTime))), to: view.to};
  if (!byTime) whole.to = view.to = Math.max(view.to, ...calls.map((call) => call.sequence + 1.1));
  return {byTime, view, whole, home: {...view}};
}

/** The bar of each call of a lane on the axis. One that has not ended extends to the right edge of the whole. */
function barsOf(lane, timeline) {
  return lane.calls.map((call, index) => {
    if (!timeline.byTime) return {call, from: call.sequence + 0.04, to: call.sequence + 0.96};
    const next = lane.calls[index + 1];
    const short = (timeline.home.to - timeline.home.from) / 300;
    const end = call.end ?? (call.over ? Math.min(call.begin + short, next ? next.begin : Infinity) : timeline.whole.to);
    return {call, from: call.begin, to: Math.max(end, call.begin + short / 4)};
  });
}

/** The interval in which the ranks of this lane should have made the others' call: from the others' first start. */
function missedCall(group, lane, timeline) {
  const wanted = group.diverges;
  const newest = Math.max(0, ...lane.calls.map((call) => call.sequence));
  if (wanted === undefined || !lane.observed_calls || newest >= wanted) return null;
  const others = group.lanes.flatMap((one) => one.calls).filter((call) => call.sequence === wanted);
  if (!others.length) return null;
  const operations = [...new Set(others.map((call) => call.operation))];
  const from = Math.min(...others.map((call) => startOf(call, timeline.byTime)));
  return {from, to: timeline.byTime ? timeline.whole.to : from + 0.96, text: `never called ${operations.length === 1 ? operations[0] : "call"} #${wanted}`};
}

/** The duration so far of a call that has not ended. */
function waited(group, call) {
  return call.over || call.begin === undefined || group.now === undefined ? "" : duration(group.now - call.begin);
}

function barText(group, call) {
  const time = waited(group, call);
  return `${call.operation || "?"} #${call.sequence}${time ? ` · waits ${time}` : ""}`;
}

function describeCall(group, lane, call) {
  const site = siteOf(call);
  const took = call.end !== undefined && call.begin !== undefined ? ` · took ${duration(call.end - call.begin)}`
    : call.over ? "" : waited(group, call) ? ` · not finished after ${waited(group, call)}` : " · not finished";
  return `${said(lane.ranks)}: ${call.operation || "unknown operation"} #${call.sequence}${site ? ` · ${place(site)}${site.function ? ` in ${site.function}` : ""}` : ""}${took}`;
}

/** Round numbers on the axis, five to ten of them. */
function ticks(from, to, byTime) {
  const raw = (to - from) / 7;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(byTime ? 0 : 1, [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw));
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) marks.push(at);
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step))));
  return marks.map((at) => ({at: byTime ? at : at + 0.5, text: byTime ? `${Number(at.toFixed(digits))} s` : `#${at}`}));
}
