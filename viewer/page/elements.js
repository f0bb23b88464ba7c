// SPDX-License-Identifier: Apache-2.0
// What every part of the page is made of: elements, sets of ranks, places in files, durations. Names, paths and source lines come from a foreign job:
// text reaches the page only through text nodes and attributes that hold no code, never as markup.
"use strict";

const report = JSON.parse(document.getElementById("report").textContent);

/** An element; strings among the children become text nodes. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

function button(text, act, attributes) {
  const made = el("button", {type: "button", ...attributes}, text);
  made.addEventListener("click", act);
  return made;
}

/** [0,1,2,5] → "0-2,5" */
function ranges(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length;) {
    let end = i;
    while (end + 1 < sorted.length && sorted[end + 1] <= sorted[end] + 1) ++end;
    parts.push(sorted[i] === sorted[end] ? `${sorted[i]}` : `${sorted[i]}-${sorted[end]}`);
    i = end + 1;
  }
  return parts.join(",");
}

const runsOf = (set) => set.split(",").map((part) => part.split("-").map(Number)).map(([low, high]) => [low, high ?? low]);
/** "0-2,5" → [0,1,2,5] */
const numbersOf = (set) => (set ? runsOf(set).flatMap(([low, high]) => Array.from({length: high - low + 1}, (_, i) => low + i)) : []);
/** The number of ranks in "0-2,5". */
const sizeOf = (set) => (set ? runsOf(set).reduce((sum, [low, high]) => sum + high - low + 1, 0) : 0);
const counted = (count) => count.toLocaleString("en");

/** A process from its row and the tables of html_pack.h. */
function unpackedProcess([rank, pid, ppid, host, kind, tids]) {
  const {threads, ...same} = report.process_kinds[kind];
  return {...(rank === null ? {} : {rank}), pid, ppid, host: report.process_hosts[host], ...same,
    threads: threads.map((thread, i) => ({tid: pid + tids[i], ...report.threads[thread]}))};
}

report.processes = report.processes.map(unpackedProcess);
for (const group of report.groups) {
  if (!Array.isArray(group.ranks)) group.ranks = numbersOf(group.ranks);
  group.progress = group.progress.flatMap(([ranks, enqueued, completed]) => numbersOf(ranks).map((rank) => ({rank, enqueued, completed})));
  group.progress.sort((a, b) => a.rank - b.rank);
}

/** "517,525,533,541" → "517-541 step 8"; every other set unchanged. */
function strided(set) {
  const runs = runsOf(set);
  const step = runs.length > 3 ? runs[1][0] - runs[0][0] : 0;
  const even = step > 1 && runs.every(([low, high], i) => low === high && (i === 0 || low - runs[i - 1][0] === step));
  return even ? `${runs[0][0]}-${runs[runs.length - 1][0]} step ${step}` : set;
}

const said = (set) => (/[-,]/.test(set) ? "ranks " : "rank ") + strided(set);
/** A set that is too long to read is shown as its size. */
const shortly = (set) => (strided(set).length > 32 ? `${counted(sizeOf(set))} ranks` : said(set));
/** The same as an element that shows the whole set when the pointer is over it. */
const rankChip = (numbers, kind) => el("span", {class: `ranks ${kind || ""}`.trim(), title: said(ranges(numbers))}, shortly(ranges(numbers)));

const firstFinding = report.findings[0];
const culprits = new Set((firstFinding || {}).culprits || []);
/** True if this set, as "0-2,5", has only culprits. */
function isCulprits(set) {
  return culprits.size > 0 && set !== "" && runsOf(set).every(([low, high]) => {
    if (high - low >= culprits.size) return false;
    for (let rank = low; rank <= high; ++rank) if (!culprits.has(rank)) return false;
    return true;
  });
}

const baseName = (path) => (path || "").split("/").pop();
const place = (at) => (at.file ? baseName(at.file) + (at.line ? `:${at.line}` : "") : "");
const frameOf = (id) => report.frames[id];
const stackOf = (thread) => (report.stacks[thread.frames] || []).map(frameOf);
/** "Trainer.fit.<locals>.step" is "step" in the user's source. */
const functionName = (frame) => (frame.function || "?").split("<locals>.").pop();
const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

/** A line of a file that opens in the editor that handles vscode:// links; paths that are not absolute are plain text. */
function placeLink(at) {
  if (!at.file || !at.file.startsWith("/")) return el("code", {title: at.file || ""}, place(at));
  return el("a", {class: "place-link", href: `vscode://file${encodeURI(at.file)}${at.line ? `:${at.line}` : ""}`, title: `${at.file} (opens in VS Code)`},
    el("code", {}, place(at)));
}

/** Text in which `code` becomes elements. */
function prose(text) {
  return text.split(/(`[^`]+`)/).map((part) => (/^`[^`]+`$/.test(part) ? el("code", {}, part.slice(1, -1)) : part)).filter((part) => part !== "");
}

/** The source around a line; nothing if no source is known. */
function codeBlock(file, line) {
  const lines = (report.sources || {})[file];
  if (!lines || !lines[line]) return null;
  const block = el("pre", {class: "code"});
  for (let number = line - 2; number <= line + 2; ++number) {
    if (lines[number] !== undefined) block.append(el("div", {class: number === line ? "hit" : ""}, el("span", {}, String(number)), lines[number] || " "));
  }
  return block;
}

function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  const two = (large, unit, small, smaller) => `${large} ${unit}${small ? ` ${small} ${smaller}` : ""}`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (minutes < 60) return two(minutes, "min", Math.floor(seconds % 60), "s");
  if (days < 2) return two(hours, "h", minutes % 60, "min");
  return days < 730 ? `${days} days` : `${Math.floor(days / 365)} years`;
}

/** torch names the world's group "0". */
function groupName(group) {
  const name = group.name || group.id;
  return name === "0" ? "default_pg" : name;
}

/** A folded part of the page that is drawn when it is first opened. */
function drawnLater(title, draw) {
  const part = el("details", {}, el("summary", {}, title));
  part.addEventListener("toggle", () => part.append(...draw()), {once: true});
  return part;
}

/** Shows for a moment, on the button itself, that the action succeeded. */
function confirmOn(made, text) {
  const before = made.textContent;
  made.textContent = text;
  setTimeout(() => { made.textContent = before; }, 1500);
}

/** Pages opened from a file may have no clipboard: then a selection is copied. */
async function copyText(text, made) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", {class: "offscreen"}, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  confirmOn(made, "copied");
}
