# SPDX-License-Identifier: Apache-2.0
"""Shortens a report to a number of characters, for readers with a small context: what decides is kept, `cut` says what was omitted.

Each step omits more; the first result that is short enough is returned. Findings are shortened last, and the first finding is never
omitted."""
import copy
import json
from typing import Any, Callable, Dict, Mapping, Tuple

USUAL = 20_000
LEAST = 2_000
MOST = 1_000_000

Document = Dict[str, Any]


def _innermost_frames(report: Document) -> None:
    for process in report.get("processes", ()):
        for thread in process.get("threads", ()):
            thread["frames"] = thread.get("frames", [])[:12]


def _main_threads(report: Document) -> None:
    for process in report.get("processes", ()):
        threads = process.get("threads", [])
        process["threads"] = [thread for thread in threads if thread.get("tid") == process.get("pid")] or threads[:1]


def _no_threads(report: Document) -> None:
    for process in report.get("processes", ()):
        process.pop("threads", None)


def _without(key: str, instead: Any) -> Callable[[Document], None]:
    def step(report: Document) -> None:
        if report.get(key):
            report[key] = instead
    return step


def _few_edges(report: Document) -> None:
    edges = report.get("wait_for", {}).get("edges", [])
    del edges[20:]
    report.get("wait_for", {}).pop("nodes", None)


def _few_groups(report: Document) -> None:
    groups = report.get("groups", [])
    groups.sort(key=lambda group: group.get("first_divergence") is None)  # groups that differ first
    del groups[8:]
    for group in groups:
        del group.get("progress", [])[16:]


def _short_text(report: Document) -> None:
    if len(report.get("text", "")) > 4000:
        report["text"] = report["text"][:4000] + "…"


def _short_findings(report: Document) -> None:
    del report.get("findings", [])[3:]
    for finding in report.get("findings", ()):
        del finding.get("evidence", [])[6:]
        del finding.get("locations", [])[6:]


def _short_coverage(report: Document) -> None:
    for sentences in report.get("coverage", {}).values():
        if isinstance(sentences, list):
            del sentences[10:]


def _one_finding(report: Document) -> None:
    kept = {key: report[key] for key in ("schema", "whole", "verdict", "cut") if key in report}
    findings = report.get("findings", [])[:1]
    report.clear()
    report.update(kept, findings=findings)


def _bounded(value: Any, most: int) -> Any:
    """No string longer than `most` characters, no list of more than `most` / 8 entries."""
    if isinstance(value, str):
        return value if len(value) <= most else value[:most - 1] + "…"
    if isinstance(value, list):
        return [_bounded(each, most) for each in value[:most // 8]]
    if isinstance(value, dict):
        return {key: _bounded(each, most) for key, each in list(value.items())[:most]}
    return value


STEPS: Tuple[Tuple[str, Callable[[Document], None]], ...] = (
    ("processes: the 12 innermost frames of each thread", _innermost_frames),
    ("processes: main threads only", _main_threads),
    ("processes: no stacks", _no_threads),
    ("stack_diff", _without("stack_diff", [])),
    ("processes", _without("processes", [])),
    ("wait_for: 20 edges", _few_edges),
    ("groups: 8 of them, 16 ranks each", _few_groups),
    ("coverage: 10 sentences of each list", _short_coverage),
    ("text: 4,000 characters", _short_text),
    ("text", _without("text", "")),
    ("findings: 3 of them, 6 facts and 6 places each", _short_findings),
    ("all but the first finding", _one_finding),
)


def shortened(report: Mapping[str, Any], limit: int) -> Document:
    """The report as JSON with at most `limit` characters (2,000 to 1,000,000). `cut` lists the steps that were needed, in order; absent if
    none was."""
    if not LEAST <= limit <= MOST:
        raise ValueError(f"max_chars is {limit}; it must be {LEAST:,} to {MOST:,}")
    out: Document = copy.deepcopy(dict(report))
    for name, step in STEPS:
        if _size(out) <= limit:
            return out
        before = _size(out)
        step(out)
        if _size(out) < before:
            out.setdefault("cut", []).append(name)
    most = 512
    while _size(out) > limit:  # long strings and lists of one finding
        out["findings"] = _bounded(out["findings"], most)
        most //= 2
    return out


def _size(document: Document) -> int:
    return len(json.dumps(document, indent=2))
