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

/** A process in the table. Its row is made when it is first shown: of ten thousand, most never are. */
function drawProcess(process) {
  const ended = process.exit ? (process.exit.signal !== undefined ? `signal ${process.exit.signal}` : `exit ${process.exit.status}`) : process.state;
  const cells = [process.rank ?? "", process.role, process.pid, process.host, ended, process.threads.length];
  const where = whereIs(process);
  let row = null, body = null, words = null;
  const toggle = () => {
    if (row.classList.toggle("open")) {
      body = el("tr", {}, el("td", {colspan: cells.length + 1}, el("div", {class: "mono small faint"}, (report.commands[process.command] || []).join(" ")),
        ...(process.problems || []).map((problem) => el("div", {class: "notes"}, problem)), ...process.threads.map(drawThread)));
      row.after(body);
    } else if (body) {
      body.remove();
    }
  };
  const draw = () => {
    row = el("tr", {class: "row", tabindex: "0"}, ...cells.map((cell) => el("td", {}, String(cell))), el("td", {class: "where"}, where));
    row.addEventListener("click", toggle);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
    return row;
  };
  return {
    of: process.rank, role: process.role, state: ended, where,
    contains: (word) => (words ??= [...cells, `rank ${process.rank}`, where, ...process.threads.map((thread) => thread.name)].join(" ").toLowerCase()).includes(word),
    /** Shows it below `above`, or first in `table`; returns its last line. */
    show: (above, table) => {
      if (!row) above ? above.after(draw()) : table.prepend(draw());
      row.hidden = false;
      return row.classList.contains("open") ? body : row;
    },
    /** Returns its line, if it has one. */
    hide: () => {
      if (row && row.classList.contains("open")) toggle();
      if (row) row.hidden = true;
      return row;
    },
  };
}

/** Shows the rows of a group that `shown` accepts. */
function arrange({head, table, rows}, shown) {
  let last = head || null;
  for (const one of rows) last = (shown(one) ? one.show(last, table) : one.hide()) || last;
}

/** Rows of one part of the table. */
const drawTogether = (rows) => ({rows, table: el("tbody", {})});

/** Rows under a heading line that opens them. */
function drawAlike(rows) {
  const [first] = rows;
  const set = ranges(rows.map(({of}) => of).filter((rank) => rank !== undefined));
  const head = el("tr", {class: "alike", tabindex: "0"}, el("td", {title: set}, strided(set).length > 24 ? "…" : strided(set)), el("td", {}, first.role),
    el("td", {colspan: 4}, `${rows.length} processes that do the same`), el("td", {class: "where"}, first.where));
  const alike = {head, rows, open: false, table: el("tbody", {}, head)};
  const toggle = () => {
    alike.open = head.classList.toggle("open");
    arrange(alike, () => alike.open);
  };
  head.addEventListener("click", toggle);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
  return alike;
}

/** Each row by itself, or grouped with similar rows if there are many; culprits are never hidden. */
function gathered(rows) {
  if (rows.length <= mostProcesses) return [drawTogether(rows)];
  const alike = new Map();
  for (const row of rows) {
    const key = culprits.has(row.of) ? row : `${row.role} ${row.state} ${row.where}`;
    if (!alike.has(key)) alike.set(key, []);
    alike.get(key).push(row);
  }
  const fewFirst = [...alike].sort(([a, these], [b, those]) => (typeof a === "string") - (typeof b === "string") || these.length - those.length);
  return fewFirst.map(([, found]) => (found.length > 1 ? drawAlike : drawTogether)(found));
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
    for (const part of gatherings) {
      if (part.head) part.head.hidden = searching;
      arrange(part, (one) => {
        const fits = wanted.every(one.contains) && (rank === null || one.of === Number(rank[1]));
        if (fits) ++found;
        return fits && (searching || !part.head || part.open);
      });
    }
    count.textContent = `${found} of ${rows.length}`;
  };
  search.addEventListener("input", filter);
  filter();
  const heads = ["rank", "role", "pid", "host", "state", "threads", "main thread is in"];
  return [el("div", {class: "bar"}, search, count), el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", {}, head)))),
    ...gatherings.map(({table}) => table))];
}
