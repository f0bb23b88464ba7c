# SPDX-License-Identifier: Apache-2.0
"""What the cases of the zoo may accept: a case that accepts two opposite answers, or any line of main, proves nothing."""
import json
import sys
from pathlib import Path

import pytest

ZOO = Path(__file__).resolve().parent.parent / "zoo"
sys.path.insert(0, str(ZOO))
import judge  # noqa: E402
import zoo  # noqa: E402

CASES = list(zoo.cases([], False))
FAULTY = [(folder, case) for folder, case in CASES if not case.get("healthy_only")]


def name_of(pair):
    return f"{pair[0]}/{pair[1]['script']}"


@pytest.mark.parametrize("pair", FAULTY, ids=name_of)
def test_a_case_accepts_one_answer(pair):
    folder, case = pair
    assert not judge.opposite_answers(case), "two accepted answers have no rank in common"
    assert "optional" not in case
    assert not [name for name in case.get("functions", []) if name.split(".")[-1] in ("main", "<module>")], "any line of main is no place"
    assert not case.get("location", True) or zoo.marked_lines(folder, case) or case.get("functions"), "no line is marked # CULPRIT"


def report(kind="missing-rank", confidence="certain", culprits=(1,), waiting=(0,), line=1):
    return {"verdict": "hang", "findings": [{"kind": kind, "confidence": confidence, "summary": "…", "culprits": list(culprits), "waiting": list(waiting),
                                             "locations": [{"file": "/tmp/train.py", "line": line, "function": "step"}]}]}


@pytest.fixture
def case(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("go()  # CULPRIT\nstop()\n")
    monkeypatch.setattr(judge, "HERE", tmp_path.parent)
    return tmp_path.name, {"script": "train.py", "kind": "missing-rank", "culprits": [1], "waiting": [0]}


@pytest.mark.parametrize("told, status, said", [
    (report(), 1, None),
    (report(confidence="possible"), 1, "possible instead of"),
    (report(kind="dead-rank"), 1, "kind dead-rank"),
    (report(culprits=(0,), waiting=()), 1, "culprits [0]"),
    (report(waiting=()), 1, "waiting []"),
    (report(culprits=(1,), waiting=(0, 1)), 1, "accused and said to wait"),
    (report(line=2), 1, "location"),
    (report(), 0, "exit status 0"),
    ({"verdict": "running", "findings": []}, 0, "no finding"),
])
def test_the_judge_of_a_fault(case, told, status, said):
    wrong = judge.problems(*case, False, told, status)
    assert bool(wrong) == bool(said) and all([said in "; ".join(wrong)] if said else []), wrong


@pytest.mark.parametrize("told, status, mode, said", [
    ({"findings": []}, 0, "attach", None),
    ({"findings": []}, 1, "attach", "attach ended with 1"),
    (report(confidence="likely"), 1, "attach", "false alarm"),
    (report(confidence="possible"), 1, "attach", None),
    ({"findings": []}, 3, "run", "run ended with 3"),
    ({"findings": []}, None, "run", None),
])
def test_the_judge_of_a_twin(case, told, status, mode, said):
    wrong = judge.problems(*case, True, told, status, mode)
    assert bool(wrong) == bool(said) and all([said in "; ".join(wrong)] if said else []), json.dumps(wrong)
