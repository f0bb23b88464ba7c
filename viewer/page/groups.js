// SPDX-License-Identifier: Apache-2.0
// Process groups: how far each rank is. Groups in which ranks differ come first; the others are folded, and drawn when opened.
"use strict";

const mostGroups = 12;

function drawDivergence(first) {
  if (!first) return null;
  return el("ul", {}, ...first.calls.map((call) => {
    const about = [call.operation || "no call yet", call.dtype || "", call.shape ? `[${call.shape.join(",")}]` : "", call.reduce_op || ""].filter(Boolean).join(" ");
    return el("li", {}, el("code", {}, `#${first.sequence}`), " ", rankChip(call.ranks), ": ", about, ...(call.call_site ? [" at ", placeLink(call.call_site)] : []));
  }));
}

/** Ranks that are equally far, the last one first. */
function progressLanes(group) {
  const alike = new Map();
  for (const at of group.progress) {
    const key = `${at.completed}/${at.enqueued}`;
    if (!alike.has(key)) alike.set(key, {...at, ranks: []});
    alike.get(key).ranks.push(at.rank);
  }
  return [...alike.values()].sort((a, b) => a.enqueued - b.enqueued || a.completed - b.completed);
}

function drawProgress(group) {
  const most = Math.max(1, ...group.progress.map((at) => at.enqueued));
  // Lanes differ by a few calls of thousands: the scale begins at the last call that all have made.
  const least = Math.max(0, Math.min(most, ...group.progress.map((at) => at.completed)) - 5);
  const share = (count) => `${Math.max(0, 100 * (count - least) / (most - least)).toFixed(1)}%`;
  return progressLanes(group).map((lane) => {
    const enqueued = el("i"), completed = el("i");
    enqueued.style.width = share(lane.enqueued);
    completed.style.width = share(lane.completed);
    return el("div", {class: "lane small"}, rankChip(lane.ranks, isCulprits(ranges(lane.ranks)) ? "guilty" : ""), el("span", {class: "track"}, enqueued, completed),
      el("span", {class: "faint"}, `${counted(lane.completed)} of ${counted(lane.enqueued)} done`));
  });
}

/** Groups with the same name are distinguished by their first rank. */
function groupTitle(group) {
  const namesakes = report.groups.filter((one) => groupName(one) === groupName(group)).length;
  return groupName(group) + (namesakes > 1 && group.ranks.length ? ` (rank ${Math.min(...group.ranks)} …)` : "");
}

function drawGroup(group) {
  const about = [group.backend, group.ranks.length ? shortly(ranges(group.ranks)) : ""].filter(Boolean).join(" · ");
  return el("div", {class: "card group"}, el("h3", {}, groupTitle(group), " ", el("span", {class: "faint small", title: group.ranks.length ? said(ranges(group.ranks)) : ""}, about)),
    drawDivergence(group.first_divergence), ...drawProgress(group));
}

/** True if the group shows where ranks differ. */
const differs = (group) => Boolean(group.first_divergence) || progressLanes(group).length > 1;
const holdsCulprit = (group) => group.ranks.some((rank) => culprits.has(rank));

function drawMany(groups) {
  const shown = groups.slice(0, mostGroups).map(drawGroup);
  return groups.length > mostGroups ? [...shown, drawnLater(`${groups.length - mostGroups} more`, () => groups.slice(mostGroups).map(drawGroup))] : shown;
}

function drawGroups() {
  const known = report.groups.filter((group) => group.progress.length || group.first_divergence);
  const telling = known.filter(differs).sort((a, b) => Boolean(b.first_divergence) - Boolean(a.first_divergence) || holdsCulprit(b) - holdsCulprit(a));
  const calm = known.filter((group) => !differs(group)).sort((a, b) => holdsCulprit(b) - holdsCulprit(a));
  const folded = calm.length ? drawnLater(calm.length === 1 ? `1 group agrees: ${groupTitle(calm[0])}` : `${counted(calm.length)} groups agree`, () => drawMany(calm)) : null;
  return [...drawMany(telling), folded].filter(Boolean);
}
