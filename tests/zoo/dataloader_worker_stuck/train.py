# SPDX-License-Identifier: Apache-2.0
"""A worker of rank 1 never returns from __getitem__: it waits for a remote shard. Rank 1 waits for the worker, the others for rank 1."""
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    def __init__(self, rank):
        self.rank = rank

    def __len__(self):
        return 10**6

    def fetch(self, index):
        while self.rank == 1 and index >= 24 and "--healthy" not in sys.argv:
            time.sleep(0.2)  # CULPRIT
        return torch.full((4,), float(index))

    def __getitem__(self, index):
        return self.fetch(index)


def main():
    dist.init_process_group("gloo")
    loader = DataLoader(Shards(dist.get_rank()), batch_size=4, num_workers=2)
    for step, batch in enumerate(loader):
        dist.all_reduce(batch)
        if step == 4:
            print("READY", flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
