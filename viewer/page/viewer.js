// SPDX-License-Identifier: Apache-2.0
// Draws the report that stands in #report. Names, paths and source lines come from a foreign job: text reaches the page only through text nodes
// and attributes that hold no code, never as markup.
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

/** How many ranks "0-2,5" holds. */
const sizeOf = (set) => set.split(",").map((part) => part.split("-").map(Number)).reduce((sum, [low, high]) => sum + (high ?? low) - low + 1, 0);
/** A set that is too long to read is its size. */
const shortly = (set) => (set.length > 32 ? `${sizeOf(set)} ranks` : said(set));
const said = (set) => (/[-,]/.test(set) ? "ranks " : "rank ") + set;
const baseName = (path) => (path || "").split("/").pop();
const place = (at) => (at.file ? baseName(at.file) + (at.line ? `:${at.line}` : "") : "");
const culprits = new Set((report.findings[0] || {}).culprits || []);
const frameOf = (id) => report.frames[id];
const stackOf = (thread) => (report.stacks[thread.frames] || []).map(frameOf);

function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Does this set, as "0-2,5", hold a culprit and nobody else? */
function isCulprits(set) {
  const ends = set.split(",").map((part) => part.split("-").map(Number));
  return culprits.size > 0 && ends.every(([low, high]) => {
    for (let rank = low; rank <= (high ?? low); ++rank) if (!culprits.has(rank)) return false;
    return true;
  });
}

/** A folded part of the page that is drawn when it is opened first. */
function drawnLater(title, draw) {
  const part = el("details", {}, el("summary", {}, title));
  part.addEventListener("toggle", () => part.append(...draw()), {once: true});
  return part;
}

// ---- head

const mostHosts = 4;

function drawHead() {
  const job = report.job;
  const about = [job.world_size !== undefined ? `${job.world_size} ranks` : "", job.hosts.length > mostHosts ? `${job.hosts.length} hosts` : job.hosts.join(" "), job.launcher_pid ? `launcher ${job.launcher_pid}` : "",
    job.seconds_without_progress !== undefined ? `no progress for ${duration(job.seconds_without_progress)}` : ""].filter(Boolean).join(" · ");
  const first = report.findings[0];
  document.title = `${report.verdict}: ${first ? first.summary : "ddpdoctor report"}`;
  const head = document.getElementById("head");
  head.append(el("h1", {}, el("span", {class: `badge ${report.verdict}`}, report.verdict), first ? first.summary : "nothing found"),
    el("div", {class: "faint small"}, about), el("div", {class: "faint small mono"}, job.command.join(" ")));
  const notes = [...report.coverage.warnings, ...report.coverage.unobserved];
  if (report.coverage.events_lost) notes.push(`${report.coverage.events_lost} recorded events were lost`);
  if (report.left_out) notes.push(report.left_out);
  if (notes.length) {
    head.append(el("details", {class: "warning", open: notes.length < 4}, el("summary", {}, `what was not seen (${notes.length})`),
      el("ul", {}, ...notes.map((note) => el("li", {}, note)))));
  }
}

// ---- findings

function codeBlock(file, line) {
  const lines = (report.sources || {})[file];
  if (!lines || !lines[line]) return null;
  const block = el("pre", {class: "code"});
  for (let number = line - 2; number <= line + 2; ++number) {
    if (lines[number] !== undefined) block.append(el("div", {class: number === line ? "hit" : ""}, el("span", {}, String(number)), lines[number]));
  }
  return block;
}

/** What the line came out to: an expression, and the ranks of each value. */
function drawValues(values) {
  return el("ul", {class: "small"}, ...values.map((one) => el("li", {},
    el("code", {}, one.expression), one.value === undefined ? ` unknown on ${said(ranges(one.ranks))}` : " is ",
    one.value === undefined ? null : el("strong", {}, one.value), one.value === undefined ? null : ` on ${said(ranges(one.ranks))}`,
    one.state === "known" || !one.reason ? null : el("span", {class: "faint"}, ` (${one.state === "stale" ? "now; " : ""}${one.reason})`))));
}

function drawPlace(where) {
  const ranks = where.ranks || (where.rank !== undefined ? [where.rank] : []);
  const note = where.note || (ranks.length ? said(ranges(ranks)) : "");
  return el("div", {class: "place"},
    el("div", {class: "name"}, el("code", {title: where.file || ""}, place(where)), where.function ? el("span", {class: "faint small"}, `in ${where.function}`) : null,
      el("span", {}, note)), codeBlock(where.file, where.line), where.values ? drawValues(where.values) : null);
}

function drawFinding(finding, index) {
  const details = Object.entries(finding.details || {});
  return el("article", {class: index === 0 ? "card first" : "card", tabindex: "-1"},
    el("h3", {}, finding.summary),
    el("div", {}, el("span", {class: `badge ${finding.confidence}`}, finding.confidence), el("code", {}, finding.kind),
      finding.culprits.length ? el("span", {class: "culprit"}, `  culprit: ${said(ranges(finding.culprits))}`) : null,
      finding.waiting.length ? el("span", {class: "faint"}, `  waiting: ${said(ranges(finding.waiting))}`) : null),
    ...finding.locations.map(drawPlace),
    finding.evidence.length ? el("ul", {class: "small"}, ...finding.evidence.map(
      (evidence) => el("li", {}, (evidence.rank !== undefined && !evidence.text.startsWith("rank") ? `rank ${evidence.rank}: ` : "") + evidence.text))) : null,
    finding.fix ? el("div", {class: "fix"}, el("strong", {}, "fix: "), finding.fix) : null,
    details.length ? el("details", {class: "small"}, el("summary", {}, "details"),
      el("ul", {}, ...details.map(([name, value]) => el("li", {}, `${name}: ${Array.isArray(value) ? value.join(", ") : value}`)))) : null);
}

function drawFindings() {
  if (!report.findings.length) return [el("p", {}, "No cause was found. What each process does is below.")];
  return report.findings.map(drawFinding);
}

// ---- who waits for whom

/** Nodes that wait alike become one: a thousand ranks in one all_reduce are one box. */
function mergedGraph() {
  const out = new Map(report.wait_for.nodes.map((node) => [node, []]));
  for (const edge of report.wait_for.edges) if (out.has(edge.from)) out.get(edge.from).push(edge);
  const inCycle = new Set(report.wait_for.cycles.flat());
  const bySign = new Map();
  for (const [node, edges] of out) {
    const alike = node.startsWith("rank:") && !inCycle.has(node) && !culprits.has(Number(node.slice(5)));
    const sign = alike ? JSON.stringify(edges.map((edge) => [edge.to, edge.why]).sort()) : node;
    if (!bySign.has(sign)) bySign.set(sign, {members: [], edges: [], cycle: inCycle.has(node)});
    bySign.get(sign).members.push(node);
    bySign.get(sign).edges = edges;
  }
  const boxOf = new Map();
  for (const box of bySign.values()) for (const member of box.members) boxOf.set(member, box);
  for (const box of bySign.values()) {
    const ranks = box.members.filter((node) => node.startsWith("rank:")).map((node) => Number(node.slice(5)));
    box.label = ranks.length ? shortly(ranges(ranks)) : box.members[0].replace(":", " ");
    box.culprit = ranks.some((rank) => culprits.has(rank));
    box.targets = [...new Set(box.edges.map((edge) => boxOf.get(edge.to)).filter((to) => to && to !== box))];
    box.why = [...new Set(box.edges.map((edge) => edge.why))].join("; ");
  }
  return [...bySign.values()].filter((box) => box.targets.length || [...bySign.values()].some((other) => other.targets.includes(box)));
}

/** Steps to where the waiting ends; in a cycle, to where it was entered. */
function level(box, onPath) {
  if (box.level !== undefined || onPath.has(box)) return box.level || 0;
  onPath.add(box);
  box.level = Math.max(0, ...box.targets.map((to) => level(to, onPath) + 1));
  return box.level;
}

const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

function drawGraph(boxes) {
  const width = 250, height = 44, gapX = 90, gapY = 22;
  boxes.forEach((box) => level(box, new Set()));
  const last = Math.max(...boxes.map((box) => box.level));
  const rows = new Array(last + 1).fill(0);
  for (const box of boxes) {
    box.x = 10 + (last - box.level) * (width + gapX);
    box.y = 10 + rows[box.level]++ * (height + gapY);
  }
  const all = svg("svg", {viewBox: `0 0 ${20 + (last + 1) * width + last * gapX + 30} ${20 + Math.max(...rows) * (height + gapY)}`, role: "img",
    width: 20 + (last + 1) * width + last * gapX + 30, "aria-label": "who waits for whom"},
    svg("defs", {}, ...["tip", "tip-of-cycle"].map((id) =>
      svg("marker", {id, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"},
        svg("path", {d: "M0 0 8 4 0 8z"})))));
  for (const box of boxes) {
    for (const to of box.targets) {
      const x = box.x + width, y = box.y + height / 2, v = to.y + height / 2;
      const under = box.y + height, below = to.y + height, bow = Math.max(under, below) + 28;
      const path = to.x > box.x ? `M${x} ${y} C${x + gapX / 2} ${y} ${to.x - gapX / 2} ${v} ${to.x} ${v}`
        : `M${box.x + width / 2} ${under} C${box.x + width / 2} ${bow} ${to.x + width / 2} ${bow} ${to.x + width / 2} ${below}`;
      const cycle = box.cycle && to.cycle;
      all.append(svg("path", {class: cycle ? "edge cycle" : "edge", "marker-end": cycle ? "url(#tip-of-cycle)" : "url(#tip)", d: path}));
    }
  }
  for (const box of boxes) {
    all.append(svg("g", {class: box.culprit ? "culprit" : ""}, svg("title", {}, `${box.label}\n${box.why}`),
      svg("rect", {x: box.x, y: box.y, width, height, rx: 6}), svg("text", {x: box.x + 10, y: box.y + 18}, cut(box.label, 28)),
      svg("text", {class: "why", x: box.x + 10, y: box.y + 35}, cut(box.why ? `waits: ${box.why}` : box.culprit ? "the waiting ends here" : "", 40))));
  }
  return all;
}

function drawWaits() {
  const boxes = mergedGraph();
  if (!boxes.length) return [el("p", {class: "faint"}, "Nobody is known to wait for anybody.")];
  const listed = el("ul", {class: "small"}, ...boxes.filter((box) => box.targets.length).map(
    (box) => el("li", {}, `${box.label} → ${box.targets.map((to) => to.label).join(", ")}: ${box.why}`)));
  if (boxes.length > 40) return [listed];
  return [el("div", {class: "card"}, drawGraph(boxes)), el("details", {}, el("summary", {}, "as a list"), listed)];
}

// ---- stacks

function drawFrame(frame) {
  const locals = Object.entries(frame.locals || {}).map(([name, value]) => `${name}=${value}`).join("  ");
  return el("div", {class: `frame mono ${frame.user ? "user" : "library"}`, title: frame.file || frame.module || ""}, el("span", {}, frame.function || "?"),
    el("span", {class: "faint"}, place(frame) || baseName(frame.module)), locals ? el("span", {class: "locals"}, cut(locals, 200)) : null);
}

const mostBranches = 12;  // of one place
const mostOpen = report.processes.length > 64 ? 12 : Infinity;  // blocks of a large job

/** Branches of a place in the order in which they tell: culprits, then those of few ranks. */
function telling(nodes) {
  return nodes.map((node) => ({node, blamed: isCulprits(node.ranks), size: sizeOf(node.ranks)}))
    .sort((a, b) => b.blamed - a.blamed || a.size - b.size).map(({node}) => node);
}

/** Frames that the same ranks share stand in one block; a block opens where they part. `left` counts the blocks that may still stand open. */
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
    const teller = [...shared].reverse().find((one) => one.user) || shared[shared.length - 1];
    const below = teller.user ? shared[shared.indexOf(teller) + 1] : undefined;
    const summary = el("summary", {class: isCulprits(node.ranks) ? "culprit" : ""}, el("span", {class: "ranks", title: said(node.ranks)}, shortly(node.ranks)),
      el("span", {class: "mono"}, `${teller.function || "?"} ${place(teller)}${below && below.function ? ` · ${below.function} …` : ""}`));
    const block = shared.map(drawFrame);
    if (shared.filter((one) => one.user).length === 1) block[shared.indexOf(teller)].classList.add("told");  // the line above says it
    const open = depth < 12 && left.blocks-- > 0;
    return el("details", {open}, summary, ...block, ...drawStacks(end.children, depth + 1, left));
  });
}

function drawTree() {
  if (!report.stack_diff.length) return [el("p", {class: "faint"}, "No stacks were seen.")];
  const native = el("button", {type: "button", "aria-pressed": "false"}, "show frames of libraries");
  native.addEventListener("click", () => {
    const terse = document.body.classList.toggle("terse");
    native.setAttribute("aria-pressed", String(!terse));
  });
  document.body.classList.add("terse");
  const tree = el("div", {class: "tree card"}, ...drawStacks(report.stack_diff, 0, {blocks: mostOpen}));
  const fold = el("button", {type: "button"}, "fold or unfold all");
  fold.addEventListener("click", () => {
    const all = [...tree.querySelectorAll("details")];
    const open = all.some((one) => !one.open);
    all.forEach((one) => { one.open = open; });
  });
  return [el("div", {class: "bar"}, native, fold), tree];
}

// ---- the page

const sections = [["findings", "Findings", drawFindings], ["waits", "Who waits for whom", drawWaits], ["stacks", "Where the stacks part", drawTree],
  ["lanes", "Collectives", drawTimeline], ["groups", "Process groups", drawGroups], ["processes", "Processes", drawProcesses]];

function drawPage() {
  drawHead();
  sections.forEach(([id, title, draw], index) => {
    document.getElementById("main").append(el("section", {id, tabindex: "-1"}, el("h2", {}, title), ...draw()));
    document.getElementById("nav").append(el("a", {href: `#${id}`}, title, " ", el("kbd", {}, String(index + 1))));
  });
  document.getElementById("main").append(el("footer", {class: "small"}, `${report.tool.name || "ddpdoctor"} ${report.tool.version} · keys: 1-6 sections, / search, Enter opens a process`));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  const section = sections[Number(event.key) - 1];
  if (section) {
    document.getElementById(section[0]).scrollIntoView();
    document.getElementById(section[0]).focus({preventScroll: true});
  } else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search").focus();
  }
});
window.addEventListener("beforeprint", () => document.querySelectorAll(".tree details").forEach((one) => { one.open = true; }));

drawPage();
