# SPDX-License-Identifier: Apache-2.0
"""Rank 1 keeps every batch of its DataLoader for a plot at the end. Under the file_system strategy each tensor of a worker is a file in
/dev/shm that lives as long as somebody has it; the twin keeps a number of each."""
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [1], "waiting": [], "confidence": "likely", "settle": 8}
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset

torch.multiprocessing.set_sharing_strategy("file_system")


class Pictures(Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        return torch.full((64,), float(index)), index % 10


def main():
    dist.init_process_group("gloo")
    loader = DataLoader(Pictures(), batch_size=4, num_workers=1)
    seen = []
    for step, (pictures, labels) in enumerate(loader):
        loss = pictures.mean()
        dist.all_reduce(loss)
        if dist.get_rank() == 1:
            if "--healthy" in sys.argv:
                seen.append(pictures.mean().item())
            else:
                seen.append((pictures, labels))  # CULPRIT
        if step == 40:
            print("READY", flush=True)
        time.sleep(0.05)


main()
