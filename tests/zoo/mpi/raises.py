# SPDX-License-Identifier: Apache-2.0
"""One rank raises; its Python then waits in MPI_Finalize and does not end, the others wait for it in a reduction of objects."""
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
healthy = "--healthy" in sys.argv


def work():
    weights = {"bias": 0.0} if rank == 1 and not healthy else {"bias": 0.0, "scale": 1.0}
    scale = weights["scale"]  # CULPRIT
    world.allreduce(scale)
    for _ in range(600 if healthy else 0):
        time.sleep(0.02)
        world.allreduce(scale)


for _ in range(10):
    world.allreduce(rank)
print("READY", flush=True)
work()
