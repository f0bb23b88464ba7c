#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `ddpdoctor run` itself uses during a busy job: 3 gloo ranks that all_reduce almost without a pause. Prints figures, asserts nothing.

  tail_cost.py [--seconds N]      $DDPDOCTOR is the program; run with a Python that has torch"""
import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agent"))
import kill_rounds  # noqa: E402


def seconds_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        job = kill_rounds.Round(folder, random.Random(os.getpid()))
        job.start()
        try:
            if job.problems:
                print(job.problems)
                return 1
            before, steps, began = seconds_of(job.run.pid), job.steps(), time.monotonic()
            time.sleep(options.seconds)
            took = time.monotonic() - began
            used, done = seconds_of(job.run.pid) - before, sum(job.steps()) - sum(steps)
            print(f"{done / took:.0f} collectives a second, all ranks: ddpdoctor used {used / took:.2%} of a core; peak "
                  + next(line for line in Path(f"/proc/{job.run.pid}/status").read_text().splitlines() if line.startswith("VmHWM")).split(":")[1].strip())
        finally:
            job.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
