# SPDX-License-Identifier: Apache-2.0
"""A busy DataLoader: workers compute, the main process waits briefly for each batch."""
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.randn(16)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(16, 4))
    for step, batch in enumerate(DataLoader(Images(), batch_size=4, num_workers=2)):
        model(batch).sum().backward()
        if step == 3:
            print("READY", flush=True)


if __name__ == "__main__":
    main()
