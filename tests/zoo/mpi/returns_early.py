# SPDX-License-Identifier: Apache-2.0
"""One rank returns and waits in MPI_Finalize, which mpi4py calls at the end; the others wait for it in a reduction of objects."""
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
healthy = "--healthy" in sys.argv


def work():
    if rank == 2 and not healthy:
        return  # CULPRIT
    world.allreduce(rank)  # CULPRIT
    for _ in range(600 if healthy else 0):
        time.sleep(0.02)
        world.allreduce(rank)


for _ in range(10):
    world.allreduce(rank)
print("READY", flush=True)
work()
