#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev demo`: starts a real 4-rank PyTorch job that hangs, attaches ddpdoctor ($DDPDOCTOR) to it, prints the report, ends the job. Exits
0 if a cause was named."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/zoo"))
import zoo  # noqa: E402

FOLDER = "rank_conditional_collective"


def main():
    case = next(case for folder, case in zoo.cases([f"{FOLDER}/train.py"], False) if folder == FOLDER)
    print(f"== starting tests/zoo/{FOLDER}/train.py on 4 ranks (torchrun, gloo, CPU)", file=sys.stderr, flush=True)
    job = zoo.Job(FOLDER, case, healthy=False)
    try:
        if not job.wait_ready(False, limit=180):
            print(job.output(), file=sys.stderr)
            print("the demo job did not come up", file=sys.stderr)
            return 3
        tool = os.environ["DDPDOCTOR"]
        print(f"== the job hangs; $ ddpdoctor attach {job.process.pid}\n", file=sys.stderr, flush=True)
        return 0 if subprocess.run([tool, "attach", str(job.process.pid)], check=False).returncode == 1 else 3
    finally:
        job.end()
        print("\n== the job was ended", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
