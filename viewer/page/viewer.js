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

// ---- head

function drawHead() {
  const job = report.job;
  const about = [job.world_size !== undefined ? `${job.world_size} ranks` : "", job.hosts.join(" "), job.launcher_pid ? `launcher ${job.launcher_pid}` : "",
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

function drawPlace(where) {
  const ranks = where.ranks || (where.rank !== undefined ? [where.rank] : []);
  const note = where.note || (ranks.length ? said(ranges(ranks)) : "");
  return el("div", {class: "place"},
    el("div", {class: "name"}, el("code", {title: where.file || ""}, place(where)), where.function ? el("span", {class: "faint small"}, `in ${where.function}`) : null,
      el("span", {}, note)), codeBlock(where.file, where.line));
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
    box.label = ranks.length ? said(ranges(ranks)) : box.members[0].replace(":", " ");
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
      svg("rect", {x: box.x, y: box.y, width, height, rx: 6}), svg("text", {x: box.x + 10, y: box.y + 18}, cut(box.label, 32)),
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

/** Frames that the same ranks share stand in one block; a block opens where they part. */
function drawStacks(nodes, depth) {
  return nodes.map((node) => {
    const shared = [node];
    let end = node;
    while (end.children.length === 1 && end.children[0].ranks === node.ranks) shared.push(end = end.children[0]);
    const telling = [...shared].reverse().find((one) => one.user) || shared[shared.length - 1];
    const below = telling.user ? shared[shared.indexOf(telling) + 1] : undefined;
    const summary = el("summary", {class: isCulprits(node.ranks) ? "culprit" : ""}, el("span", {class: "ranks"}, said(node.ranks)),
      el("span", {class: "mono"}, `${telling.function || "?"} ${place(telling)}${below && below.function ? ` · ${below.function} …` : ""}`));
    const block = shared.map(drawFrame);
    if (shared.filter((one) => one.user).length === 1) block[shared.indexOf(telling)].classList.add("told");  // the line above says it
    return el("details", {open: depth < 12}, summary, ...block, ...drawStacks(end.children, depth + 1));
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
  const tree = el("div", {class: "tree card"}, ...drawStacks(report.stack_diff, 0));
  const fold = el("button", {type: "button"}, "fold or unfold all");
  fold.addEventListener("click", () => {
    const all = [...tree.querySelectorAll("details")];
    const open = all.some((one) => !one.open);
    all.forEach((one) => { one.open = open; });
  });
  return [el("div", {class: "bar"}, native, fold), tree];
}

// ---- groups

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

// ---- processes

function whereIs(process) {
  const frames = process.threads.length ? stackOf(process.threads[0]) : [];
  const telling = frames.find((frame) => frame.user) || frames.find((frame) => frame.function);
  return telling ? `${telling.function} ${place(telling) || baseName(telling.module)}` : "";
}

function drawThread(thread) {
  const waits = thread.waits_on ? `waits for ${thread.waits_on.kind} ${thread.waits_on.detail || thread.waits_on.target || ""}` : "";
  return el("details", {}, el("summary", {}, `thread ${thread.tid} ${thread.name} [${thread.state}]${thread.gil ? " holds the GIL" : ""} ${waits}`), ...stackOf(thread).map(drawFrame));
}

function drawProcess(process) {
  const ended = process.exit ? (process.exit.signal !== undefined ? `signal ${process.exit.signal}` : `exit ${process.exit.status}`) : process.state;
  const cells = [process.rank ?? "", process.role, process.pid, process.host, ended, process.threads.length];
  const row = el("tr", {class: "row", tabindex: "0"}, ...cells.map((cell) => el("td", {}, String(cell))), el("td", {class: "where"}, whereIs(process)));
  let body = null;
  const toggle = () => {
    if (row.classList.toggle("open")) {
      body = el("tr", {}, el("td", {colspan: cells.length + 1}, el("div", {class: "mono small faint"}, (report.commands[process.command] || []).join(" ")),
        ...(process.problems || []).map((problem) => el("div", {class: "warning small"}, problem)), ...process.threads.map(drawThread)));
      row.after(body);
    } else if (body) {
      body.remove();
    }
  };
  row.addEventListener("click", toggle);
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
  const words = [...cells, `rank ${process.rank}`, whereIs(process), ...process.threads.map((thread) => thread.name)].join(" ").toLowerCase();
  return {row, words, of: process.rank, close: () => { if (row.classList.contains("open")) toggle(); }};
}

function drawProcesses() {
  const rows = report.processes.map(drawProcess);
  const search = el("input", {type: "search", id: "search", placeholder: "search: rank, pid, role, host, function", "aria-label": "search processes"});
  const count = el("span", {class: "faint small", role: "status"});
  const filter = () => {
    // "rank 2" means that rank, not every line with a 2 in it.
    const rank = /\brank\s*(\d+)\b/i.exec(search.value);
    const wanted = search.value.toLowerCase().replace(/\brank\s*\d+\b/, " ").split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const {row, words, close, of} of rows) {
      row.hidden = !wanted.every((word) => words.includes(word)) || (rank !== null && of !== Number(rank[1]));
      if (row.hidden) close(); else ++shown;
    }
    count.textContent = `${shown} of ${rows.length}`;
  };
  search.addEventListener("input", filter);
  filter();
  const heads = ["rank", "role", "pid", "host", "state", "threads", "where its main thread is"];
  return [el("div", {class: "bar"}, search, count), el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", {}, head)))),
    el("tbody", {}, ...rows.map(({row}) => row)))];
}

// ---- the page

const sections = [["findings", "Findings", drawFindings], ["waits", "Who waits for whom", drawWaits], ["stacks", "Where the stacks part", drawTree],
  ["lanes", "Collectives", drawTimeline], ["groups", "Process groups", () => report.groups.map(drawGroup)], ["processes", "Processes", drawProcesses]];

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
