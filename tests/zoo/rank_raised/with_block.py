# SPDX-License-Identifier: Apache-2.0
"""An exception leaves a `with` whose __exit__ has a barrier; it is not printed, and the others are in the next step."""
import contextlib
import sys
import time

import torch
import torch.distributed as dist


@contextlib.contextmanager
def distributed():
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.barrier()
        dist.destroy_process_group()


def rows(rank, healthy):
    for number in range(100000):
        yield int("unknown") if rank == 0 and number == 50 and not healthy else number  # CULPRIT


def main():
    with distributed() as rank:
        print("READY", flush=True)
        for row in rows(rank, "--healthy" in sys.argv):
            dist.all_gather_object([None] * dist.get_world_size(), row)
            time.sleep(0.01)


main()
