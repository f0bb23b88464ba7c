#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks whether a result depends on a name: every capture is reported unchanged and with neutral names for everything that is the user's.

  suite.py [FILE|FOLDER…] [--seed N] [--repeat N] [-v]

A file is a ddpdoctor.capture/1 or a .ddpd recording; without one, the captures of tests/golden. Kind, culprits and line of the first
finding must stay and its confidence must not rise. The tool is $DDPDOCTOR. The seed is printed. Exits non-zero if fewer than 98 % stay; the
last line counts them."""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import captures

HERE = Path(__file__).resolve().parent
TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
GRADES = ["possible", "likely", "certain"]
WANTED = 0.98


def first_finding(capture):
    """The first finding of a capture: kind, culprits, file, line, confidence; None if nothing is found."""
    with tempfile.TemporaryDirectory(prefix="ddprename_") as folder:
        source, target = Path(folder) / "capture.json", Path(folder) / "report.json"
        source.write_text(json.dumps(capture))
        done = subprocess.run([TOOL, "report", str(source), "-o", str(target)], cwd=folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"report ended with {done.returncode}: {done.stderr.strip()[:300]}")
        findings = json.loads(target.read_text())["findings"]
    if not findings:
        return None
    finding = findings[0]
    place = (finding.get("locations") or [{}])[0]
    return {"kind": finding["kind"], "culprits": finding.get("culprits"), "file": place.get("file"), "line": place.get("line"),
            "confidence": finding["confidence"], "summary": finding["summary"]}


def differences(before, after, names):
    """The differences between the two results, as sentences."""
    if before is None or after is None:
        return [] if before == after else [f"{'no finding' if before is None else before['kind']} became {'no finding' if after is None else after['kind']}"]
    wrong = [f"{key} {before[key]} became {after[key]}" for key in ("kind", "culprits", "line") if before[key] != after[key]]
    if before["file"] and captures.renamed_path(before["file"], names) != after["file"]:
        wrong.append(f"file {before['file']} became {after['file']}")
    if GRADES.index(after["confidence"]) > GRADES.index(before["confidence"]):
        wrong.append(f"{before['confidence']} became {after['confidence']}")
    return wrong


def listed(paths):
    for path in paths or [HERE.parent / "golden"]:
        path = Path(path)
        if path.is_dir():
            yield from sorted(p for p in path.iterdir() if p.suffix in (".json", ".ddpd") and not p.name.endswith(".expect.json"))
        else:
            yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--seed", type=int, default=int(datetime.date.today().strftime("%Y%m%d")))
    parser.add_argument("--repeat", type=int, default=1, help="with so many seeds, one after the other")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    same = changed = 0
    for seed in range(options.seed, options.seed + options.repeat):
        print(f"seed {seed}", flush=True)
        for file in listed(options.paths):
            capture = captures.load(file)
            if not str(capture.get("schema", "")).startswith("ddpdoctor.capture/"):
                continue
            renamed, names = captures.renamed(capture, seed)
            before, after = first_finding(capture), first_finding(renamed)
            wrong = differences(before, after, names)
            same, changed = same + (not wrong), changed + bool(wrong)
            if wrong:
                print(f"CHANGED {file.name}: {'; '.join(wrong)}" + (f"\n    {before and before['summary']}\n    {after and after['summary']}" if options.verbose else ""), flush=True)
    total = same + changed
    print(f"{same} of {total} first findings keep kind, culprits and line, and none of them rises in confidence")
    print(f"{same} passed, {changed} failed")
    return 1 if total and same / total < WANTED else 0


if __name__ == "__main__":
    sys.exit(main())
