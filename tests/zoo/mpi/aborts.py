# SPDX-License-Identifier: Apache-2.0
"""One rank gives up with comm.Abort() when it has lost a file; nothing is raised."""
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
healthy = "--healthy" in sys.argv


def shard(number):
    return None if number == 2 and not healthy else number


def work():
    mine = shard(rank)
    if mine is None:
        print("no shard", file=sys.stderr, flush=True)
        world.Abort(7)  # CULPRIT
    for _ in range(600 if healthy else 1):
        time.sleep(0.02)
        world.allreduce(mine)


for _ in range(10):
    world.allreduce(rank)
print("READY", flush=True)
work()
