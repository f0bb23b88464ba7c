// SPDX-License-Identifier: Apache-2.0
// Exports the report: Markdown for the clipboard, report.json and a trace as files, all made from the data in the page.
"use strict";

/** Code keeps its backticks, whatever its content. */
function quoted(text) {
  const longest = Math.max(0, ...(text.match(/`+/g) || []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest ? `${fence} ${text} ${fence}` : fence + text + fence;
}

/** Text of a job outside code: nothing in it becomes markup, a link or a mention. */
function plain(text) {
  return text.split(/(`[^`]+`)/).map((part) => (/^`[^`]+`$/.test(part) ? part : part.replace(/[\\*{}[\]<>|]/g, "\\$&").replace(/@(?=\w)/g, "@\u200b"))).join("");
}

function findingMarkdown(finding) {
  const places = finding.locations.map((where) => {
    const source = ((report.sources || {})[where.file] || {})[where.line];
    const values = (where.values || []).filter((one) => one.value !== undefined).map((one) => `${quoted(one.value)} on ${said(ranges(one.ranks))}`).join(", ");
    return `- ${quoted(place(where) || where.function || "unknown")}${source ? ` ${quoted(source.trim())}` : ""} ${plain(where.note || "")}${values ? `: ${values}` : ""}`;
  });
  return [`### ${plain(finding.summary)}`, "", `${quoted(finding.kind)} (${finding.confidence})`, "", ...places, "",
    ...reasonsOf(finding).map((line) => `- ${plain(line)}`), "", `**Fix:** ${plain(finding.fix || "")}`, "",
    `More: ${quoted(`ddpdoctor explain ${finding.kind}`)}`, ""].join("\n").replace(/\n{3,}/g, "\n\n");
}

function reportMarkdown() {
  return [`## ddpdoctor: ${report.verdict}`, "", plain(jobFacts().join(" · ")), "", ...report.findings.map(findingMarkdown)].join("\n");
}

function download(name, type, text) {
  const link = el("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function unpackTree(nodes) {
  return nodes.map(({user, wrapper, ranks, children, ...frame}) => ({...frame, ranks: numbersOf(ranks), children: unpackTree(children)}));
}

function unpackThread(thread) {
  return {...thread, frames: stackOf(thread).map(({user, ...frame}) => frame)};
}

/** report.json as written by `-o report.json`, without what was omitted from the page. */
function unpackedReport() {
  const {frames, stacks, threads, commands, process_kinds, process_hosts, sites, lanes, waits, sources, explanations, reasons, left_out, ...kept} = report;
  const edges = kept.wait_for.edges.flatMap(([from, to, why]) => from.flatMap((one) => to.map((other) => ({from: one, to: other, why}))));
  const nodes = [...new Set(edges.flatMap((edge) => [edge.from, edge.to]))].sort();
  return {...kept, wait_for: {nodes, ...kept.wait_for, edges}, stack_diff: unpackTree(kept.stack_diff),
    processes: kept.processes.map((process) => ({...process, command: commands[process.command] || [], threads: process.threads.map(unpackThread)}))};
}

/** The calls that the page draws, as trace events for Perfetto. */
function traceEvents() {
  const events = [];
  report.lanes.forEach((group, track) => {
    const name = groupName(report.groups.find((one) => one.id === group.group) || {id: group.group});
    for (const lane of group.lanes) {
      const pid = runsOf(lane.ranks)[0][0];
      events.push({ph: "M", name: "process_name", pid, args: {name: said(lane.ranks)}}, {ph: "M", name: "thread_name", pid, tid: track + 1, args: {name}});
      for (const call of lane.calls.filter((one) => one.begin !== undefined)) {
        const end = call.end ?? (call.over ? call.begin : group.now ?? call.begin);
        events.push({ph: "X", name: `${call.operation} #${call.sequence}`, pid, tid: track + 1, ts: call.begin * 1e6, dur: Math.max(0, end - call.begin) * 1e6,
          args: {group: name, at: call.site === undefined ? "" : place(report.sites[call.site])}});
      }
    }
  });
  return {traceEvents: events, displayTimeUnit: "ms"};
}

function drawExports() {
  const markdown = button("Copy as Markdown", () => copyText(reportMarkdown(), markdown), {id: "copy-markdown"});
  const json = button("report.json", () => download("report.json", "application/json", JSON.stringify(unpackedReport(), null, 1) + "\n"),
    {id: "download-json", title: report.left_out || "download the report for programs"});
  const timed = report.lanes.some((group) => group.lanes.some((lane) => lane.calls.some((call) => call.begin !== undefined)));
  const trace = timed ? button("Trace", () => download("report.perfetto.json", "application/json", JSON.stringify(traceEvents())),
    {id: "download-trace", title: "download the drawn calls for ui.perfetto.dev"}) : null;
  return [report.findings.length ? markdown : null, json, trace, themeButton()];
}

const themes = ["system", "light", "dark"];

/** The system's theme, or one of two. */
function themeButton() {
  let at = 0;
  const made = button("Theme: system", () => {
    at = (at + 1) % themes.length;
    if (at) document.documentElement.dataset.theme = themes[at];
    else delete document.documentElement.dataset.theme;
    made.textContent = `Theme: ${themes[at]}`;
  }, {id: "theme"});
  return made;
}
