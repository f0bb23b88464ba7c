# SPDX-License-Identifier: Apache-2.0
"""The cases of the zoo, read from their folders, and what is missing on this machine for each."""
import importlib.util
import json
import os
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
CI_CASES = {"rank_conditional_collective/train.py", "unused_parameters/train.py", "uneven_inputs/train.py", "mismatched_op/train.py",
            "dataloader_worker_stuck/train.py", "lock_deadlock/train.py", "rendezvous_incomplete/train.py", "missing_rank/train.py",
            "p2p_deadlock/both_receive.py", "stale_file_lock/baton.py", "healthy/dataloader.py", "healthy/barrier.py",
            "shm_leaked/kept_batches.py", "mpi/mismatched_op.c", "rank_conditional_collective/lightning_log.py",
            "rank_conditional_collective/accelerate_gather.py"}
CI_RUN_CASES = {"rank_conditional_collective/train.py", "uneven_inputs/train.py", "rank_raised/train.py", "dead_rank/train.py", "shm_leaked/train.py",
                "state_dict_prefix/train.py", "marked_ready_twice/train.py", "mpi/raises.py", "healthy/barrier.py"}


def told_cases(folder):
    """The cases of a folder; by default a script's name is its own and the kind is the folder's."""
    if (folder / "expected.json").exists():
        return json.loads((folder / "expected.json").read_text())
    told = []
    for script in sorted(folder.glob("*.py")):
        for line in script.read_text().splitlines():
            if line.startswith("# EXPECT "):
                told.append({"script": script.name, "kind": folder.name.replace("_", "-"), **json.loads(line[len("# EXPECT "):])})
    return told


def cases(names, ci, mode="run"):
    """(folder, case); `"mode": "run"` in a case: only a job recorded from its start shows the cause."""
    chosen = CI_RUN_CASES if mode == "run" else CI_CASES
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        for case in told_cases(folder):
            label = f"{folder.name}/{case['script']}"
            if case.get("mode") == "run" and mode != "run":
                continue
            if (not names or any(n in label for n in names)) and (not ci or label in chosen):
                yield folder.name, case


def missing_need(case):
    """What is missing on this machine for a case; None if nothing is."""
    for name in case.get("requires", []):
        if importlib.util.find_spec(name) is None:
            return f"no module {name} in this Python"
    for need in case.get("needs", []):
        if need.startswith("module:"):
            if importlib.util.find_spec(need[7:]) is None:
                return f"no Python module {need[7:]}"
        elif need.startswith("writable:"):
            if not os.access(need[9:], os.W_OK):
                return f"{need[9:]} may not be written"
        elif shutil.which(need) is None:
            return f"no {need}"
    return None
