// SPDX-License-Identifier: Apache-2.0
// A finding: its summary with culprits and line, the decision that separates the ranks with its values, why, the fix, and the page of
// `explain`.
"use strict";

const meanings = {
  certain: "certain: two independent facts say so",
  likely: "likely: one fact says so",
  possible: "possible: it fits what was seen, but nothing proves it",
};

/** What precedes the reason of a value that was not read as it was. */
const marks = {stale: "now; ", derived: "derived: "};

/** The values of the line's condition: each value with the ranks that had it. */
function drawValues(values) {
  const expressions = [...new Set(values.map((one) => one.expression))];
  return expressions.map((expression) => el("table", {class: "values"}, el("caption", {}, el("code", {}, expression)),
    ...values.filter((one) => one.expression === expression).map((one) => el("tr", {class: one.ranks.some((rank) => culprits.has(rank)) ? "odd" : ""},
      el("td", {class: "value"}, one.value === undefined ? "unknown" : one.value), el("td", {}, rankChip(one.ranks)),
      el("td", {class: "faint"}, one.state === "known" || !one.reason ? "" : `${marks[one.state] || ""}${one.reason}`)))));
}

const ranksOf = (where) => where.ranks || (where.rank !== undefined ? [where.rank] : []);
/** True for a line that decides: no rank is at it, or its values are known. */
const decides = (where) => Boolean(where.values) || (ranksOf(where).length === 0 && Boolean(where.file));

function drawPlace(where, side) {
  const note = where.note || (ranksOf(where).length ? said(ranges(ranksOf(where))) : "");
  return el("div", {class: `place ${side}`},
    el("div", {class: "name"}, placeLink(where), where.function ? el("span", {class: "faint small"}, where.function + (where.module ? ` in ${where.module}` : "")) : null, el("span", {class: "note"}, ...prose(note))),
    codeBlock(where.file, where.line), ...(where.values ? drawValues(where.values) : []));
}

/** The line of the culprits, then the decision, then all other ranks. */
function drawSides(locations) {
  const [first, ...others] = locations;
  if (!first) return [];
  const culprit = decides(first) ? "decision" : "guilty";
  return [drawPlace(first, culprit), ...others.filter(decides).map((where) => drawPlace(where, "decision")),
    ...others.filter((where) => !decides(where)).map((where) => drawPlace(where, "waiting"))];
}

/** What says more than the summary and the lines above. */
const reasonsOf = (finding) => report.reasons[report.findings.indexOf(finding)] || [];

/** The page of `explain`: paragraphs, and indented lines as a diff. */
function drawExplanation(text) {
  const blocks = [];
  for (const line of text.split("\n")) {
    const code = /^ {2,}/.test(line);
    const last = blocks[blocks.length - 1];
    if (last && (last.code === code || (last.code && line === ""))) last.lines.push(line);
    else if (line !== "" || last) blocks.push({code, lines: [line]});
  }
  return blocks.flatMap(({code, lines}) => (code
    ? [el("pre", {class: "code diff"}, ...lines.join("\n").trimEnd().split("\n").map((line) => line.replace(/^ {4}/, "")).map(
      (line) => el("div", {class: line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : ""}, line || " ")))]
    : lines.join("\n").split(/\n{2,}/).filter((part) => part.trim()).map((part) => el("p", {}, ...prose(part.replace(/\n/g, " "))))));
}

function drawFix(finding) {
  if (!finding.fix) return null;
  const copy = button("Copy", () => copyText(finding.fix, copy), {class: "quiet", title: "copy the fix"});
  return el("div", {class: "fix"}, el("div", {class: "fix-head"}, el("strong", {}, "Fix"), copy), el("div", {}, ...prose(finding.fix)));
}

function drawExplain(finding) {
  const page = (report.explanations || {})[finding.kind];
  return page ? drawnLater(`About ${finding.kind}: ${page.title}`, () => [el("div", {class: "explanation"}, ...drawExplanation(page.text))]) : null;
}

const mostEvidence = 6;

function drawEvidence(finding) {
  const lines = reasonsOf(finding).map((line) => el("li", {}, ...prose(line)));
  if (!lines.length) return null;
  const rest = lines.splice(mostEvidence);
  return el("div", {class: "why"}, el("strong", {}, "Why"), el("ul", {}, ...lines),
    rest.length ? drawnLater(`${rest.length} more facts`, () => [el("ul", {}, ...rest)]) : null);
}

const detailText = (value) => (Array.isArray(value) ? value.join(", ") : String(value));

/** True for an error or a warning. */
function tone(finding) {
  const calm = finding.confidence === "possible" || ["running", "finished", "slow"].includes(report.verdict);
  return calm ? "calm" : "bad";
}

function drawFinding(finding, index) {
  const details = Object.entries(finding.details || {});
  const copy = button("Copy as Markdown", () => copyText(findingMarkdown(finding), copy), {class: "quiet"});
  return el("article", {class: `card finding ${tone(finding)} ${index === 0 ? "first" : ""}`.trim(), tabindex: "-1"},
    el("div", {class: "finding-head"}, el("h3", {}, ...prose(finding.summary)), copy),
    el("div", {class: "facts"}, el("span", {class: `badge ${finding.confidence}`, title: meanings[finding.confidence]}, finding.confidence),
      el("code", {title: `ddpdoctor explain ${finding.kind}`}, finding.kind),
      finding.culprits.length ? el("span", {}, "culprit ", rankChip(finding.culprits, "guilty")) : null,
      finding.waiting.length ? el("span", {}, "waiting ", rankChip(finding.waiting)) : null),
    ...drawSides(finding.locations), drawEvidence(finding), drawFix(finding), drawExplain(finding),
    details.length ? el("details", {}, el("summary", {}, "Details"),
      el("dl", {}, ...details.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, detailText(value))]))) : null);
}

const mostFindings = 3;

function drawFindings() {
  const drawn = report.findings.map(drawFinding);
  const rest = drawn.splice(mostFindings);
  return rest.length ? [...drawn, drawnLater(`${rest.length} more findings`, () => rest)] : drawn;
}
