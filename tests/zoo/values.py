#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the cases of the zoo whose report says what the deciding line came out to on each rank.

  values.py [--keep FOLDER] [NAME…]    runs the faulty sides under `ddpdoctor attach`, one after the other

Counted are cases of kinds that a decision of the program's Python makes, all of whose ranks still run. The decision is the first expression
of a place of the first finding; what it reads is every expression after it that its text contains. A case counts by the best that its report
shows of them for all culprits and all ranks that wait, with different values:

  known      the decision's own value, read from memory
  derived    the decision's value, on some ranks as it follows from the lines that they reached
  operand    the value of something that it reads, read from memory
  now        the decision's value or an operand, on some ranks as it is after something was assigned
  no         nothing that differs, or some rank is missing

`--keep` writes the reports into a folder, and reads those that are there instead of running the case again. The tool is $DDPDOCTOR."""
import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import cases, missing_need
from jobs import Job
from zoo import TOOL

DECIDED = {"rank-conditional-collective", "divergent-branch", "uneven-inputs", "collective-count", "uncoordinated-stop", "generate-length",
           "skipped-sharded-module", "unused-parameters", "new-group-subset", "mismatched-op", "collective-order", "rank0-only-ddp-forward"}
TRIES = 3  # a machine under load starts a job too late


def report_on(folder, case):
    job = Job(folder, case, False)
    try:
        if not job.wait_ready(False):
            return None
        with tempfile.TemporaryDirectory() as room:
            target = Path(room) / "report.json"
            subprocess.run([TOOL, "attach", str(job.process.pid), "-o", str(target)], capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
            return json.loads(target.read_text()) if target.exists() else None
    finally:
        job.end()


def kept_report(folder, case, keep):
    """The report of a case, from the folder if it is there."""
    target = keep and keep / f"{folder}-{Path(case['script']).with_suffix('').as_posix().replace('/', '_')}.json"
    if target and target.exists():
        return json.loads(target.read_text())
    report = None
    for _ in range(TRIES):
        report = report_on(folder, case)
        if report and report.get("findings"):
            break
    if target and report:
        target.write_text(json.dumps(report, indent=1))
    return report or {}


def shown(finding):
    """(place, {expression: [group…]}) of each place with values."""
    for place in finding.get("locations", []):
        by_expression = {}
        for group in place.get("values", []):
            by_expression.setdefault(group["expression"], []).append(group)
        yield f"{Path(place['file']).name}:{place['line']}", by_expression


ANSWERS = (("known", True, {"known"}), ("derived", True, {"known", "derived"}), ("operand", False, {"known"}),
           ("now", True, {"known", "derived", "stale"}), ("now", False, {"known", "stale"}))


def differs(groups, states, ranks):
    """The expression has a value of these states on every rank, and not one for all."""
    seen = [group for group in groups if group["state"] in states and "value" in group]
    return {rank for group in seen for rank in group["ranks"]} >= ranks and len({group["value"] for group in seen}) > 1


def answer(report):
    finding = (report.get("findings") or [{}])[0]
    ranks = {*finding.get("culprits", []), *finding.get("waiting", [])}
    for word, of_decision, states in ANSWERS:
        for _, by_expression in shown(finding) if ranks else ():
            decision = next(iter(by_expression), "")
            if any(differs(groups, states, ranks) for expression, groups in by_expression.items()
                   if (expression == decision) == of_decision and expression in decision):
                return word
    return "no"


def told(groups):
    return ", ".join(f"{group.get('value', 'unknown')} on {group['ranks']}" + (f" ({group['state']}: {group.get('reason')})" if group["state"] != "known" else "")
                     for group in groups)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    count = collections.Counter()
    for folder, case in cases(options.names, False, "attach"):
        label = f"{folder}/{case['script']}"
        if case["kind"] not in DECIDED or not label.endswith(".py") or case.get("healthy_only") or missing_need(case):
            continue
        report = kept_report(folder, case, options.keep)
        finding = (report.get("findings") or [{}])[0]
        word = answer(report)
        count[word] += 1
        print(f"{word:8} {label} ({finding.get('kind', 'no finding')})", flush=True)
        for place, one in shown(finding):
            for expression, groups in one.items():
                print(f"      {place} `{expression}`: {told(groups)}", flush=True)
    print(f"{count.total()} cases: " + ", ".join(f"{count[word]} {word}" for word in ("known", "derived", "operand", "now", "no")))


if __name__ == "__main__":
    main()
