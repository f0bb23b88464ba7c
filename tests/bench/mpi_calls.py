#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent adds to a call of MPI: alternating runs of mpi_calls.c with and without it, medians. $DDPDOCTOR is the program.

  mpi_calls.py [--runs N] [--family .openmpi|.mpich]"""
import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--family", default="")
    options = parser.parse_args()
    agent = Path(os.environ["DDPDOCTOR"]).resolve().parent / "libddpdoctor_agent.so"
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/mpi_calls"
        subprocess.run(["mpicc" + options.family, "-O2", "-o", program, str(HERE / "mpi_calls.c")], check=True)
        base = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        under = {**base, "LD_PRELOAD": str(agent), "DDPDOCTOR_SPOOL": folder}
        seen = {"without": [], "with": []}
        for _ in range(options.runs):
            for name, variables in (("without", base), ("with", under)):
                done = subprocess.run(["mpirun" + options.family, "-n", "1", program], env=variables, capture_output=True, text=True, check=True)
                seen[name].append([float(word) for word in done.stdout.split()])
        for place, call in enumerate(("MPI_Allreduce", "MPI_Irecv + MPI_Wait")):
            plain, recorded = (statistics.median(run[place] for run in seen[name]) for name in ("without", "with"))
            print(f"{call}: {plain:.0f} ns without, {recorded:.0f} ns with the agent, {recorded - plain:.0f} ns added")


main()
