#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures written by hand for causes that no CPU job can show, and the text ddpdoctor must say of them.

  golden.py [NAME…] [--update]

KIND.json or KIND__STORY.json is a ddpdoctor.capture/1, KIND.WORD a folder of flight-recorder dumps that torch wrote; `ddpdoctor report`
must print its .txt (KIND.WORD.txt) byte for byte and name KIND first; of a healthy__STORY.json it must say nothing likely. The tool is $DDPDOCTOR.
The other formats of some of them are in renderings/ (renderings.py). `--update` writes all anew: read the diff. Ends non-zero when a text differs;
the last line counts."""
import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import renderings

HERE = Path(__file__).resolve().parent
TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")


def kind_of(capture):
    return capture.stem.split("__")[0].replace("_", "-")


def captures(names=()):
    found = sorted([*HERE.glob("*.json"), *(dump.parent for dump in HERE.glob("*/rank_0"))])
    return [file for file in found if not names or any(name in file.name for name in names)]


def expected_text(capture):
    return capture.parent / f"{capture.name}.txt" if capture.is_dir() else capture.with_suffix(".txt")


def report(capture):
    """What `ddpdoctor report` prints, and its findings, in order."""
    with tempfile.TemporaryDirectory(prefix="ddpgolden_") as folder:
        target = Path(folder) / "report.json"
        environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")}
        done = subprocess.run([TOOL, "report", capture.name, "-o", str(target)], cwd=HERE, env={**environment, "LC_ALL": "C", "NO_COLOR": "1"},
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"report {capture.name} ended with {done.returncode}: {done.stderr.strip()[:300]}")
        return done.stdout, json.loads(target.read_text())["findings"]


def problems(capture, update=False):
    """The errors, as sentences; empty if there is none."""
    try:
        text, findings = report(capture)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return [str(error)]
    kinds = [finding["kind"] for finding in findings]
    wrong = [] if kinds[:1] == [kind_of(capture)] else [f"{kinds} found; {kind_of(capture)} is to be the first"]
    if kind_of(capture) == "healthy":
        wrong = [f"{finding['kind']} is {finding['confidence']}, and nothing is wrong" for finding in findings if finding["confidence"] != "possible"]
    expected = expected_text(capture)
    if update and not wrong:
        expected.write_text(text)
    told = expected.read_text() if expected.exists() else ""
    if text != told:
        wrong.append("the text differs:\n" + "".join(difflib.unified_diff(told.splitlines(True), text.splitlines(True), expected.name, "said now")))
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    failed = 0
    chosen = captures(options.names)
    for capture in chosen:
        wrong = problems(capture, options.update)
        failed += bool(wrong)
        print(f"{'MISS' if wrong else 'ok  '} {capture.stem}" + "".join(f"\n       {sentence}" for sentence in wrong))
    drawn = [(story, ending) for story in renderings.STORIES if any(story == capture.name for capture in chosen) for ending in renderings.ENDINGS]
    for story, ending in drawn:
        wrong = renderings.problems(story, ending, options.update)
        failed += bool(wrong)
        print(f"{'MISS' if wrong else 'ok  '} {story} as {ending}" + "".join(f"\n       {sentence}" for sentence in wrong))
    print(f"{len(chosen) + len(drawn) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
