# SPDX-License-Identifier: Apache-2.0
"""A DataLoader worker of rank 0 pauses between its attempts to read a record; the other rank waits in a collective."""
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        if dist.is_initialized() and index == 6:
            for _ in range(11):
                time.sleep(1)
        return torch.ones(4)


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    slow = dist.get_rank() == 0
    for batch in DataLoader(Records(), batch_size=2, num_workers=1 if slow else 0, prefetch_factor=1 if slow else None):
        dist.all_reduce(batch)


main()
