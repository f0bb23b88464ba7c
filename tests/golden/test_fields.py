# SPDX-License-Identifier: Apache-2.0
"""Captures with fields removed or of a wrong type. An absent field is unknown: less evidence makes a finding weaker and never accuses
another rank; a wrong type is refused with one sentence. Skipped without a tool in $DDPDOCTOR."""
import copy
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import golden

ROUNDS = 2  # of each capture and test
VALUES = [None, "x", "", -1, 0, 2**31, 2**63, 1e300, True, [], {}, [[]], [{}], {"x": {}}, "\u0000", "\u00e9\ud83d\ude00", "99999999999999999999"]
UGLY = re.compile(r"terminate called|Sanitizer|runtime error|nlohmann|std::|json\.exception|core dumped")

pytestmark = pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")


def fields(value, path=()):
    """Paths of every member and element, except the schema's name."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        if path or key != "schema":
            yield (*path, key)
            yield from fields(child, (*path, key))


def holder(document, path):
    for key in path[:-1]:
        document = document[key]
    return document


def said(document, folder):
    """Exit status, stderr and findings (None if there is no report)."""
    written, target = folder / "hand.json", folder / "report.json"
    written.write_text(json.dumps(document))
    target.unlink(missing_ok=True)
    done = subprocess.run([golden.TOOL, "report", str(written), "-o", str(target)], cwd=folder, capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr, json.loads(target.read_text())["findings"] if target.exists() else None


def accused(findings, sure=False):
    return {rank for finding in findings if not sure or finding["confidence"] != "possible" for rank in finding["culprits"]}


CAPTURES = [capture for capture in golden.captures() if capture.is_file()]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.stem)
def test_a_removed_field_accuses_nobody_else(capture, tmp_path):
    whole = json.loads(capture.read_text())
    guilty = accused(said(whole, tmp_path)[2])
    chance = random.Random(capture.stem)
    for _ in range(ROUNDS):
        less = copy.deepcopy(whole)
        paths = list(fields(less))
        gone = sorted(chance.sample(paths, k=max(1, int(len(paths) * chance.choice([0.01, 0.05, 0.2])))), key=len, reverse=True)
        for path in gone:  # the deepest first
            if isinstance(holder(less, path), dict):
                del holder(less, path)[path[-1]]
        status, error, findings = said(less, tmp_path)
        assert status in (0, 1), error
        assert accused(findings, sure=True) <= guilty, f"without {gone}: {[f['summary'] for f in findings]}"


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.stem)
def test_a_wrong_value_is_refused_in_a_sentence_or_read(capture, tmp_path):
    whole = json.loads(capture.read_text())
    chance = random.Random(capture.stem + "!")
    paths = list(fields(whole))
    for _ in range(ROUNDS):
        path = chance.choice(paths)
        wrong = copy.deepcopy(whole)
        holder(wrong, path)[path[-1]] = value = chance.choice(VALUES)
        status, error, _ = said(wrong, tmp_path)
        assert status in (0, 1, 2, 3) and not UGLY.search(error), f"{path} = {value!r}: {status} {error}"
        if status in (2, 3):
            assert "hand.json" in error and len(error) < 400, f"{path} = {value!r}: {error}"
