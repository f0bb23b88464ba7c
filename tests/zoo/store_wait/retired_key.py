# SPDX-License-Identifier: Apache-2.0
"""Rank 0 deletes a key of the store when all ranks but one have read it: the last rank waits for the key forever."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


class Board:
    def __init__(self, store, readers):
        self.store, self.readers = store, readers

    def post(self, step):
        self.store.set(f"plan/{step}", str(step))

    def take(self, step):
        plan = self.store.get(f"plan/{step}")  # CULPRIT
        self.store.add(f"read/{step}", 1)
        return int(plan)

    def retire(self, step):
        while self.store.add(f"read/{step}", 0) < self.readers:
            time.sleep(0.005)
        self.store.delete_key(f"plan/{step}")


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    board = Board(dist.distributed_c10d._get_default_store(), world)
    print("READY", flush=True)
    for step in range(10**9):
        if rank == 0:
            board.post(step)
        if step == 30 and not HEALTHY:  # from now on, rank 0 does not wait for the last reader
            board.readers -= 1
            time.sleep(1 if rank == 2 else 0)
        board.take(step)
        if rank == 0:
            board.retire(step)
        dist.all_reduce(torch.ones(4))
        time.sleep(0.02)


if __name__ == "__main__":
    main()
