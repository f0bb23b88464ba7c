// SPDX-License-Identifier: Apache-2.0
// Process groups: how far each rank has come. Of hundreds of groups (data × tensor × pipeline parallel) those that tell something stand first, the
// rest is drawn when it is asked for.
"use strict";

const mostGroups = 12;

function drawDivergence(first) {
  if (!first) return null;
  return el("ul", {class: "small"}, ...first.calls.map((call) => {
    const about = [call.operation || "nothing yet", call.dtype || "", call.shape ? `[${call.shape.join(",")}]` : "", call.reduce_op || ""].filter(Boolean).join(" ");
    return el("li", {}, `#${first.sequence}: ${said(ranges(call.ranks))}: ${about}${call.call_site ? ` at ${place(call.call_site)} in ${call.call_site.function || "?"}` : ""}`);
  }));
}

function drawGroup(group) {
  const alike = new Map();
  for (const at of group.progress) {
    const key = `${at.completed}/${at.enqueued}`;
    if (!alike.has(key)) alike.set(key, {...at, ranks: []});
    alike.get(key).ranks.push(at.rank);
  }
  const most = Math.max(1, ...group.progress.map((at) => at.enqueued));
  // Lanes differ by a few calls of thousands: the scale begins where all have been.
  const least = Math.max(0, Math.min(most, ...group.progress.map((at) => at.completed)) - 5);
  const share = (count) => `${Math.max(0, 100 * (count - least) / (most - least)).toFixed(1)}%`;
  const lanes = [...alike.values()].sort((a, b) => a.enqueued - b.enqueued || a.completed - b.completed).map((lane) => {
    const enqueued = el("i"), completed = el("i");
    enqueued.style.width = share(lane.enqueued);
    completed.style.width = share(lane.completed);
    const set = ranges(lane.ranks);
    return el("div", {class: "lane small"}, el("span", {class: isCulprits(set) ? "culprit" : ""}, said(set)), el("span", {class: "track"}, enqueued, completed),
      el("span", {class: "faint"}, `${lane.completed} of ${lane.enqueued} done`));
  });
  return el("div", {class: "card"}, el("h3", {}, group.name || group.id, " ", el("span", {class: "faint small"},
      [group.backend, group.ranks.length ? said(ranges(group.ranks)) : ""].filter(Boolean).join(" · "))),
    drawDivergence(group.first_divergence), ...lanes);
}

/** Does the group show where ranks part, or hold a culprit? */
function tells(group) {
  return Boolean(group.first_divergence) || group.ranks.some((rank) => culprits.has(rank));
}

function drawGroups() {
  const groups = report.groups.length > mostGroups ? [...report.groups].sort((a, b) => tells(b) - tells(a)) : report.groups;
  const shown = Math.min(groups.length, mostGroups);
  const drawn = groups.slice(0, shown).map(drawGroup);
  return shown < groups.length ? [...drawn, drawnLater(`${groups.length - shown} more groups`, () => groups.slice(shown).map(drawGroup))] : drawn;
}
