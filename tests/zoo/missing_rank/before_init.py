# SPDX-License-Identifier: Apache-2.0
"""Rank 0 means to start last, and waits for files that the others write after init_process_group, in which they wait for it: it opens
the store. Nobody listens on MASTER_PORT, and nothing is wrong with the address. Launched by a bare shell."""
import os
import pathlib
import sys
import time

import torch.distributed as dist


def join(rank, world, healthy):
    here = pathlib.Path(".")
    if healthy:
        (here / f"up.{rank}").touch()
    if rank == 0:
        while len(list(here.glob("up.*"))) < world - 1:
            time.sleep(0.25)  # CULPRIT
    dist.init_process_group("gloo")
    (here / f"up.{rank}").touch()


def main():
    print("READY", flush=True)
    join(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "--healthy" in sys.argv)
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
