#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge_again.py DIR [NAME…]: judges what `zoo.py --device simulated --keep DIR` kept, with the program that $DDPDOCTOR names now; no job is
run. A recording of attach is judged twice: as it is, and without its calls (`bare`), as if the flight recorder had been off. The dumps
are read beside the case's sources, as in the job's own folder."""
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import HERE, cases
from judge import problems
from simulated import TOOL, ask_for_nccl, label_of, name_of

MAGIC_AND_VERSION = 16  # bytes before the frames of a recording: collector/recording/recording.h


def contents(recording):
    """The capture in a recording."""
    data, at, packed = recording.read_bytes(), MAGIC_AND_VERSION, []
    while (size := struct.unpack_from("<I", data, at)[0]) != 0:
        packed.append(data[at + 8:at + 8 + size])
        at += 8 + size
    return json.loads(subprocess.run(["zstd", "-dcq"], input=b"".join(packed), capture_output=True, check=True).stdout)


def reported(work, *files):
    target = work / "report.json"
    target.unlink(missing_ok=True)
    done = subprocess.run([TOOL, "report", *files, "-o", target.name], cwd=work, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    report = json.loads(target.read_text()) if target.exists() else {"findings": []}
    return report, done.stdout + done.stderr


def inputs(work, kept):
    """(mode, files) that were kept of one side."""
    if (kept / "job.ddpd").exists():
        yield "attach", [str(kept / "job.ddpd")]
        bare = {**contents(kept / "job.ddpd"), "collectives": []}
        (work / "bare.json").write_text(json.dumps(bare))
        yield "bare", ["bare.json"]
    if dumps := sorted(kept.glob("rank*.txt")):
        for dump in dumps:
            shutil.copy(dump, work)
        yield "stacks", [dump.name for dump in dumps]
    if (kept / "run.ddpd").exists():
        yield "run", [str(kept / "run.ddpd")]


def main():
    root, names = Path(sys.argv[1]).resolve(), sys.argv[2:]
    counts = {}
    for folder, told in cases([], False, "run"):
        case = {**told, **(told["simulated"] if isinstance(told.get("simulated"), dict) else {})}
        for healthy in (False, True):
            label = label_of(folder, case, healthy)
            kept = root / name_of(label)
            if not kept.is_dir() or (names and not any(name in label for name in names)):
                continue
            with tempfile.TemporaryDirectory() as made:
                work = Path(made)
                shutil.copytree(HERE / folder, work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "expected.json"))
                ask_for_nccl(work)
                for mode, files in inputs(work, kept):
                    if "pairs" in case and mode in ("bare", "stacks"):
                        continue  # only the calls show it: see simulated.py
                    report, text = reported(work, *files)
                    wrong = problems(folder, case, healthy, report, None, "stacks" if mode == "bare" else mode)
                    print(f"{'MISS' if wrong else 'ok  '} {mode:6} {label}" + "".join(f"\n       {w}" for w in wrong), flush=True)
                    (kept / f"again-{mode}.txt").write_text(text)
                    counts.setdefault((mode, healthy or case.get("healthy_only", False)), [0, 0])[1 if wrong else 0] += 1
    for (mode, healthy), (right, missed) in sorted(counts.items()):
        print(f"{mode}: {right} of {right + missed} {'healthy sides met with silence' if healthy else 'faulty sides named'}")
    return 1 if any(missed for _, missed in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
