// SPDX-License-Identifier: Apache-2.0
// The page as a whole: its head, its sections in order, its keys.
"use strict";

const mostHosts = 4;
const verdicts = {hang: "The job hangs", crash: "The job crashed", leak: "The job leaks", slow: "The job is slow", running: "The job makes progress", finished: "The job finished",
  undetermined: "The cause is undetermined"};

function jobFacts() {
  const job = report.job;
  const hosts = job.hosts.length > mostHosts ? `${job.hosts.length} hosts` : job.hosts.join(" ");
  return [job.world_size !== undefined ? `${counted(job.world_size)} ${job.world_size === 1 ? "rank" : "ranks"}` : "", hosts,
    job.seconds_without_progress !== undefined && !["running", "finished"].includes(report.verdict) ? `no progress for ${duration(job.seconds_without_progress)}` : "",
    job.launcher_pid ? `launcher ${job.launcher_pid}` : "", job.observed_at ? `observed ${job.observed_at.replace("T", " ").replace("Z", " UTC")}` : ""].filter(Boolean);
}

function drawNotes() {
  const notes = [...report.coverage.unobserved, ...report.coverage.warnings, ...(report.coverage.closing || [])];
  if (report.coverage.events_lost) notes.push(`${report.coverage.events_lost} recorded events were lost`);
  if (report.left_out) notes.push(report.left_out);
  return notes.length ? el("details", {class: "notes", open: report.coverage.unobserved.length > 0 && notes.length < 4},
    el("summary", {}, notes.length === 1 ? "1 note on what was observed" : `${notes.length} notes on what was observed`), el("ul", {}, ...notes.map((note) => el("li", {}, ...prose(note))))) : "";
}

function drawHead() {
  document.title = `${report.verdict}: ${firstFinding ? firstFinding.summary : "ddpdoctor report"}`;
  const calm = ["running", "finished"].includes(report.verdict);
  const title = calm && !report.findings.length ? `${verdicts[report.verdict]}, no problem was found` : verdicts[report.verdict] || report.verdict;
  document.getElementById("head").append(
    el("div", {class: "brand"}, el("span", {}, "ddpdoctor"), el("span", {class: "bar exports"}, ...drawExports().filter(Boolean))),
    el("h1", {}, el("span", {class: `badge ${report.verdict}`}, report.verdict), el("span", {}, title)),
    el("div", {class: "job"}, ...jobFacts().map((fact) => el("span", {}, fact))),
    report.job.command.length ? el("div", {class: "command mono"}, el("span", {class: "faint"}, "$ "), report.job.command.join(" ")) : "", drawNotes());
}

/** Where each rank is, for a page without a finding. */
function drawDoing() {
  const places = new Map();
  for (const process of report.processes.filter((one) => one.rank !== undefined && one.role === "rank")) {
    const where = whereIs(process) || "no stack";
    if (!places.has(where)) places.set(where, []);
    places.get(where).push(process.rank);
  }
  const rows = [...places].sort(([, a], [, b]) => a.length - b.length).slice(0, 16);
  const calls = report.groups.map((group) => Math.max(0, ...group.progress.map((at) => at.completed))).reduce((sum, one) => sum + one, 0);
  return [el("div", {class: "card calm"}, el("p", {}, calls ? `No cause was found. The ranks have completed up to ${counted(calls)} collectives.` : "No cause was found."),
    rows.length ? el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "ranks"), el("th", {}, "are in"))),
      el("tbody", {}, ...rows.map(([where, ranks]) => el("tr", {}, el("td", {}, rankChip(ranks)), el("td", {class: "where"}, where))))) : null)];
}

const sections = [
  ...(report.findings.length ? [["findings", report.findings.length === 1 ? "Finding" : "Findings", drawFindings]] : [["findings", "What each rank does", drawDoing]]),
  ["waits", "Who waits for whom", drawWaits], ["stacks", "Call stacks by rank", drawTree], ["lanes", "Timeline of collectives", drawTimeline], ["groups", "Process groups", drawGroups],
  ["processes", "Processes", drawProcesses]];
const drawnSections = [];

function drawPage() {
  drawHead();
  for (const [id, title, draw] of sections) {
    const parts = draw();
    if (!parts.length) continue;
    drawnSections.push(id);
    document.getElementById("main").append(el("section", {id, tabindex: "-1"}, el("h2", {}, title), ...parts));
    document.getElementById("nav").append(el("a", {href: `#${id}`, title: `key ${drawnSections.length}`}, title));
  }
  document.getElementById("main").append(el("footer", {class: "small"}, el("span", {}, `${report.tool.name || "ddpdoctor"} ${report.tool.version}`),
    el("span", {}, `keys: 1-${drawnSections.length} sections, / search, Enter opens a process`)));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing) return;
  const section = drawnSections[Number(event.key) - 1];
  if (section) {
    document.getElementById(section).scrollIntoView();
    document.getElementById(section).focus({preventScroll: true});
  } else if (event.key === "/" && document.getElementById("search")) {
    event.preventDefault();
    document.getElementById("search").focus();
  }
});
window.addEventListener("beforeprint", () => document.querySelectorAll(".tree details").forEach((one) => { one.open = true; }));

drawPage();
