// SPDX-License-Identifier: Apache-2.0
// The table of processes: search, a click opens one. If there are more than fit on a screen, processes with the same activity are one line,
// which can be opened.
"use strict";

const mostProcesses = 64;

function whereIs(process) {
  const frames = process.threads.length ? stackOf(process.threads[0]) : [];
  const telling = frames.find((frame) => frame.user) || frames.find((frame) => frame.function);
  return telling ? `${functionName(telling)} ${place(telling) || baseName(telling.module)}` : "";
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
        ...(process.problems || []).map((problem) => el("div", {class: "notes"}, problem)), ...process.threads.map(drawThread)));
      row.after(body);
    } else if (body) {
      body.remove();
    }
  };
  row.addEventListener("click", toggle);
  row.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
  const words = [...cells, `rank ${process.rank}`, whereIs(process), ...process.threads.map((thread) => thread.name)].join(" ").toLowerCase();
  return {row, words, of: process.rank, role: process.role, state: ended, where: whereIs(process), close: () => { if (row.classList.contains("open")) toggle(); }};
}

/** Rows under a heading line that opens them. */
function drawAlike(rows) {
  const [first] = rows;
  const set = ranges(rows.map(({of}) => of).filter((rank) => rank !== undefined));
  const head = el("tr", {class: "alike", tabindex: "0"}, el("td", {title: set}, strided(set).length > 24 ? "…" : strided(set)), el("td", {}, first.role),
    el("td", {colspan: 4}, `${rows.length} processes that do the same`), el("td", {class: "where"}, first.where));
  const alike = {head, rows, open: false};
  const toggle = () => {
    alike.open = head.classList.toggle("open");
    for (const {row, close} of rows) {
      row.hidden = !alike.open;
      if (row.hidden) close();
    }
  };
  head.addEventListener("click", toggle);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
  return alike;
}

/** Each row by itself, or grouped with similar rows if there are many; culprits are never hidden. */
function gathered(rows) {
  if (rows.length <= mostProcesses) return rows.map((row) => ({rows: [row]}));
  const alike = new Map();
  for (const row of rows) {
    const key = culprits.has(row.of) ? row : `${row.role} ${row.state} ${row.where}`;
    if (!alike.has(key)) alike.set(key, []);
    alike.get(key).push(row);
  }
  const fewFirst = [...alike].sort(([a, these], [b, those]) => (typeof a === "string") - (typeof b === "string") || these.length - those.length);
  return fewFirst.map(([, found]) => (found.length > 1 ? drawAlike(found) : {rows: found}));
}

function drawProcesses() {
  if (!report.processes.length) return [];
  const rows = report.processes.map(drawProcess);
  const gatherings = gathered(rows);
  const search = el("input", {type: "search", id: "search", placeholder: "search: rank, pid, role, host, function", "aria-label": "search processes"});
  const count = el("span", {class: "faint small", role: "status"});
  const filter = () => {
    // "rank 2" means that rank, not every line with a 2 in it.
    const rank = /\brank\s*(\d+)\b/i.exec(search.value);
    const wanted = search.value.toLowerCase().replace(/\brank\s*\d+\b/, " ").split(/\s+/).filter(Boolean);
    const searching = wanted.length > 0 || rank !== null;
    let found = 0;
    for (const {head, rows: here, open} of gatherings) {
      if (head) head.hidden = searching;
      for (const {row, words, close, of} of here) {
        const fits = wanted.every((word) => words.includes(word)) && (rank === null || of === Number(rank[1]));
        row.hidden = !fits || Boolean(head && !searching && !open);
        if (row.hidden) close();
        if (fits) ++found;
      }
    }
    count.textContent = `${found} of ${rows.length}`;
  };
  search.addEventListener("input", filter);
  filter();
  const heads = ["rank", "role", "pid", "host", "state", "threads", "main thread is in"];
  return [el("div", {class: "bar"}, search, count), el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", {}, head)))),
    el("tbody", {}, ...gatherings.flatMap(({head, rows: here}) => [...(head ? [head] : []), ...here.map(({row}) => row)])))];
}
