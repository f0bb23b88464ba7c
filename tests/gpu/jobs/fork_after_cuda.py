# SPDX-License-Identifier: Apache-2.0
"""A dataset keeps its tensors on the GPU, and DataLoader forks its workers after CUDA has started."""
# EXPECT {"kind": "fork-after-cuda", "launch": "torchrun", "ranks": 2, "culprits": [0, 1], "culprits_also": [[0], [1]], "functions": ["__getitem__", "Images.__getitem__", "main"], "mode": "run", "gloo": []}
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from one_gpu import begin, device, steps


class Images(Dataset):
    def __init__(self):
        self.images = torch.ones(16, 64)
        self.scale = torch.ones(1, device=device)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        if "--healthy" in sys.argv:
            return self.images[index]
        return self.images[index].to(device) * self.scale  # CULPRIT


def main():
    begin()
    images = Images()
    for step in steps():
        workers = 1 if step > 3 and "--healthy" not in sys.argv else 0
        for batch in DataLoader(images, batch_size=8, num_workers=workers):  # CULPRIT
            total = batch.to(device).sum()
            dist.all_reduce(total)
            total.item()
    dist.destroy_process_group()


main()
