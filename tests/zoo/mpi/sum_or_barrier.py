# SPDX-License-Identifier: Apache-2.0
"""mpi4py: one rank calls Barrier where the others add up their losses, as after an `if` on data that differs between ranks."""
import sys
import time

import numpy as np
from mpi4py import MPI

healthy = "--healthy" in sys.argv
world = MPI.COMM_WORLD
rank = world.Get_rank()


def average(losses):
    total = np.empty_like(losses)
    world.Allreduce(losses, total, op=MPI.SUM)
    return total / world.Get_size()


def evaluate(step):
    if rank == 2 and step == 30 and not healthy:
        world.Barrier()  # CULPRIT
    return average(np.full(1000, float(rank + step)))


def main():
    for step in range(600 if healthy else 40):
        if step == 20:
            print("READY", flush=True)
        evaluate(step)
        time.sleep(0.02 if step > 20 else 0)


main()
