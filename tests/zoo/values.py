#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the cases of the zoo whose report says what the deciding line came out to on each rank.

  values.py [NAME…]        runs the faulty sides under `ddpdoctor attach`, one after the other

Counted are cases of kinds that a decision of the program's Python makes, all of whose ranks still run. A case shows its values when, at a
place of the first finding, one expression has different values on ranks of different sides. Those that are known are counted, and beside
them those of which some are only `now …`: what the expression comes to after what it reads has changed. The tool is $DDPDOCTOR."""
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


def finding_on(folder, case):
    for _ in range(TRIES):
        report = report_on(folder, case)
        if report and report.get("findings"):
            return report["findings"][0]
    return {}


def shown(finding):
    """(place, {expression: [group…]}) of each place with values."""
    for place in finding.get("locations", []):
        by_expression = {}
        for group in place.get("values", []):
            by_expression.setdefault(group["expression"], []).append(group)
        yield f"{Path(place['file']).name}:{place['line']}", by_expression


def differs(groups, states):
    return len({group["value"] for group in groups if group["state"] in states and "value" in group}) > 1


def told(groups):
    return ", ".join(f"{group.get('value', 'unknown')} on {group['ranks']}" + (f" ({group['state']}: {group.get('reason')})" if group["state"] != "known" else "")
                     for group in groups)


def main():
    count = {"yes": 0, "now": 0, "no": 0}
    for folder, case in cases(sys.argv[1:], False, "attach"):
        label = f"{folder}/{case['script']}"
        if case["kind"] not in DECIDED or not label.endswith(".py") or case.get("healthy_only") or missing_need(case):
            continue
        finding = finding_on(folder, case)
        places = list(shown(finding))
        known, now = (any(differs(groups, states) for _, one in places for groups in one.values()) for states in (("known",), ("known", "stale")))
        answer = "yes" if known else "now" if now else "no"
        count[answer] += 1
        print(f"{answer:3} {label} ({finding.get('kind', 'no finding')})", flush=True)
        for place, one in places:
            for expression, groups in one.items():
                print(f"      {place} `{expression}`: {told(groups)}", flush=True)
    print(f"{count['yes']} of {sum(count.values())} cases show the value on each rank; {count['now']} more show it as it is now")


if __name__ == "__main__":
    main()
