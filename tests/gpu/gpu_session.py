# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin for run_single_gpu.sh: runs only one part of the jobs ($GPU_SHARD=I/N), starts none after $GPU_LAST_START (seconds since
the epoch), and prints a table of the results at the end, also to $RECORDINGS/results.txt."""
import os
import time
from pathlib import Path

import pytest

OUTCOMES = {"passed": "ok", "failed": "WRONG", "error": "ERROR", "skipped": "skip"}


def pytest_collection_modifyitems(config, items):
    part, parts = (int(word) for word in os.environ.get("GPU_SHARD", "1/1").split("/"))
    config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % parts != part - 1])
    items[:] = items[part - 1::parts]


def pytest_runtest_setup(item):
    if time.time() > float(os.environ.get("GPU_LAST_START", "inf")):
        pytest.skip("no time left to start it: call again with --shard I/N")


def row(outcome, report):
    said = dict(report.user_properties).get("said", "")
    if outcome == "skipped":
        said = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    elif outcome != "passed" and not said:
        crash = getattr(report.longrepr, "reprcrash", None)
        said = (crash.message if crash else str(report.longrepr)).splitlines()[0]
    return f"{OUTCOMES[outcome]:6}{report.duration:6.1f} s  {report.nodeid.split('::')[-1]:90} {said[:120]}"


def pytest_terminal_summary(terminalreporter):
    found = [(outcome, report) for outcome in OUTCOMES for report in terminalreporter.stats.get(outcome, [])]
    lines = [row(outcome, report) for outcome, report in sorted(found, key=lambda pair: pair[1].nodeid)]
    lines.append(", ".join(f"{word}: {sum(outcome == o for o, _ in found)}" for outcome, word in OUTCOMES.items()))
    terminalreporter.write_line("\n".join(lines))
    if os.environ.get("RECORDINGS"):
        (Path(os.environ["RECORDINGS"]) / "results.txt").write_text("\n".join([*lines, ""]))
