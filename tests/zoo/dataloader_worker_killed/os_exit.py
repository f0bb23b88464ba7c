# SPDX-License-Identifier: Apache-2.0
"""A DataLoader worker of rank 1 ends by os._exit."""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

healthy = "--healthy" in sys.argv


class Data(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        if i == 37 and dist.get_rank() == 1 and not healthy:
            os._exit(3)  # CULPRIT
        return torch.ones(4)


def main():
    dist.init_process_group("gloo")
    for epoch in range(2):
        for batch in DataLoader(Data(), batch_size=4, num_workers=2):
            dist.all_reduce(batch.sum())
    dist.destroy_process_group()


main()
