// SPDX-License-Identifier: Apache-2.0
// The stacks of all ranks as one tree: frames that the same ranks share are one block; a new block begins where the ranks differ.
"use strict";

function drawFrame(frame) {
  const locals = Object.entries(frame.locals || {}).map(([name, value]) => `${name}=${value}`).join("  ");
  return el("div", {class: `frame mono ${frame.user ? "user" : "library"}`, title: frame.file || frame.module || ""}, el("span", {}, functionName(frame)),
    frame.user ? placeLink(frame) : el("span", {class: "faint"}, place(frame) || baseName(frame.module)), locals ? el("span", {class: "locals"}, cut(locals, 200)) : null);
}

const mostBranches = 12;  // of one place
const mostOpen = report.processes.length > 64 ? 12 : Infinity;  // blocks of a large job

/** The branches of a frame, the most informative first: culprits, then branches with few ranks. */
function telling(nodes) {
  return nodes.map((node) => ({node, blamed: isCulprits(node.ranks), size: sizeOf(node.ranks)}))
    .sort((a, b) => b.blamed - a.blamed || a.size - b.size).map(({node}) => node);
}

/** The library function that a user's line called: decorators and dispatch in between are skipped. */
function libraryLabel(frames) {
  const meant = frames.findIndex((frame) => frame.function && !frame.wrapper);
  const chosen = Math.max(meant, 0);
  return frames.length ? ` · ${functionName(frames[chosen])}${chosen + 1 < frames.length ? " …" : ""}` : "";
}

function blockLabel(shared, end) {
  const teller = [...shared].reverse().find((one) => one.user) || shared[shared.length - 1];
  const below = shared.slice(shared.indexOf(teller) + 1);
  const fans = !end.children.length || below.length ? libraryLabel(end.children.length ? [...below, {}] : below) : "";
  return {teller, text: `${functionName(teller)} ${place(teller) || baseName(teller.module)}${teller.user ? fans : ""}`};
}

/** `left` is the number of blocks that may still be open. */
function drawStacks(all, depth, left) {
  const nodes = telling(all);
  if (nodes.length > mostBranches) {
    const rest = nodes.splice(mostBranches);
    return [...drawStacks(nodes, depth, left), drawnLater(`${rest.length} more places`, () => drawStacks(rest, depth, {blocks: 0}))];
  }
  return nodes.map((node) => {
    const shared = [node];
    let end = node;
    while (end.children.length === 1 && end.children[0].ranks === node.ranks) shared.push(end = end.children[0]);
    const {teller, text} = blockLabel(shared, end);
    const summary = el("summary", {class: isCulprits(node.ranks) ? "culprit" : ""}, el("span", {class: "ranks", title: said(node.ranks)}, shortly(node.ranks)),
      el("span", {class: "mono"}, text));
    const block = shared.map(drawFrame);
    if (shared.filter((one) => one.user).length === 1) block[shared.indexOf(teller)].classList.add("told");  // the line above says it
    const open = depth < 12 && left.blocks-- > 0;
    return el("details", {open}, summary, ...block, ...drawStacks(end.children, depth + 1, left));
  });
}

function drawTree() {
  if (!report.stack_diff.length) return [];
  const native = button("Show library frames", () => {
    const terse = document.body.classList.toggle("terse");
    native.setAttribute("aria-pressed", String(!terse));
  }, {"aria-pressed": "false"});
  document.body.classList.add("terse");
  const tree = el("div", {class: "tree card"}, ...drawStacks(report.stack_diff, 0, {blocks: mostOpen}));
  const fold = button("Fold or unfold all", () => {
    const all = [...tree.querySelectorAll("details")];
    const open = all.some((one) => !one.open);
    all.forEach((one) => { one.open = open; });
  }, {id: "fold"});
  return [el("div", {class: "bar"}, native, fold), tree];
}
