# SPDX-License-Identifier: Apache-2.0
"""A worker of rank 1 gets a sample that is not in the index."""
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Captions(Dataset):
    def __init__(self, known):
        self.index = {i: float(i) for i in range(known)}

    def __len__(self):
        return 40

    def caption(self, i):
        return self.index[i]  # CULPRIT

    def __getitem__(self, i):
        return torch.tensor([self.caption(i)])


def main():
    dist.init_process_group("gloo")
    broken = dist.get_rank() == 1 and "--healthy" not in sys.argv
    for batch in DataLoader(Captions(21 if broken else 40), batch_size=2, num_workers=2):
        dist.all_reduce(batch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
