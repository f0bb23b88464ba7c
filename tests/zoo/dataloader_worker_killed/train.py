# SPDX-License-Identifier: Apache-2.0
"""A worker of rank 1 is killed as the out-of-memory killer does it."""
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        if i == 17 and os.environ["RANK"] == "1" and "--healthy" not in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(2)


def main():
    dist.init_process_group("gloo")
    for batch in DataLoader(Images(), batch_size=2, num_workers=2):  # CULPRIT
        dist.all_reduce(batch)  # CULPRIT: a stack shows the line that the loop came from
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
