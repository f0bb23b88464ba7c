# SPDX-License-Identifier: Apache-2.0
"""mpi4py: every rank sends its part to the next one before it receives; the parts have grown beyond what MPI buffers."""
import sys
import time

import numpy as np
from mpi4py import MPI

healthy = "--healthy" in sys.argv
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def exchange(part):
    """Small parts go through, large ones wait for a receiver."""
    received = np.empty_like(part)
    if healthy:
        world.Sendrecv(part, (rank + 1) % size, 0, received, (rank - 1) % size, 0)
    else:
        world.Send(part, (rank + 1) % size)  # CULPRIT
        world.Recv(received, (rank - 1) % size)
    return received


def main():
    for step in range(600 if healthy else 40):
        if step == 20:
            print("READY", flush=True)
        exchange(np.ones(10 if step < 30 else 1_000_000))
        time.sleep(0.02 if step > 20 else 0)


main()
