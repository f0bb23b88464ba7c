# SPDX-License-Identifier: Apache-2.0
"""What a call of NCCL costs more under the agent, against a double that does nothing: processor time of the process, all ways in turn. $DDPDOCTOR is the program; target nccl_doubles.

    nccl_calls.py [--runs 9] [--calls 2000]"""
import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

TOOL = Path(os.environ["DDPDOCTOR"])
PROGRAM = TOOL.parent / "doubles" / "nccl_program_shared"
AGENT = TOOL.parent / "libddpdoctor_agent.so"


def nanoseconds(calls, **more):
    with tempfile.TemporaryDirectory() as spool:
        preload = dict(LD_PRELOAD=str(AGENT), DDPDOCTOR_SPOOL=spool, **more) if more else {}
        done = subprocess.run([str(PROGRAM), "bench", str(calls)], env=dict(os.environ, CUDA_DOUBLE_IDLE="1", **preload),
                              capture_output=True, text=True, check=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    ways = {"alone": {}, "recorded, no events": {"DDPDOCTOR_NCCL_EVENTS": "0"}, "recorded, with events": {"DDPDOCTOR_NCCL_EVENTS": "1"}}
    seen = {name: [] for name in ways}
    for _ in range(options.runs):
        for name, more in ways.items():
            seen[name].append(nanoseconds(options.calls, **more))
    for name, values in seen.items():
        print(f"{name:24} {statistics.median(values):7.1f} ns, least {min(values):.1f}")


if __name__ == "__main__":
    main()
