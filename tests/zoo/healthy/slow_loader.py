# SPDX-License-Identifier: Apache-2.0
"""DataLoader workers that take seconds for a sample."""
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, i):
        time.sleep(2.5 if i % 8 == 0 else 0.01)
        return torch.ones(4)


def main():
    dist.init_process_group("gloo")
    loader = DataLoader(Slow(), batch_size=4, num_workers=2)
    print("READY", flush=True)
    for batch in loader:
        dist.all_reduce(batch)


main()
