# SPDX-License-Identifier: Apache-2.0
"""A container gives 16 MB of /dev/shm, and the workers of a DataLoader put batches of 8 MB into it. The twin's batches are small."""
# EXPECT {"launch": "command", "command": "unshare -rm bash -c 'mount -t tmpfs -o size=16m tmpfs /dev/shm && exec \"$0\" -m torch.distributed.run --nproc_per_node=2 --master_port={port} train.py {healthy}' {python}", "ranks": 2, "culprits": [1], "needs": ["unshare"], "mode": "run"}
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

PIXELS = 64 if "--healthy" in sys.argv else 1 << 20


class Pictures(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((PIXELS,), float(index))


def main():
    dist.init_process_group("gloo")
    loader = DataLoader(Pictures(), batch_size=2, num_workers=2) if dist.get_rank() == 1 else 32 * [torch.ones(1)]
    for pictures in loader:  # CULPRIT
        dist.all_reduce(pictures.mean())
    dist.destroy_process_group()


main()
