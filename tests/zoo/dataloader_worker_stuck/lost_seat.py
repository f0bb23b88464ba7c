# SPDX-License-Identifier: Apache-2.0
"""The two DataLoader workers of rank 1 share one decoder seat; a bad record raises between acquire and release, and the seat is kept."""
import multiprocessing
import os
import sys
import time
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

HEALTHY = "--healthy" in sys.argv


class Decoders:
    def __init__(self, count):
        self.seats = multiprocessing.get_context("fork").Semaphore(count)

    @contextmanager
    def seat(self):
        self.seats.acquire()  # CULPRIT
        try:
            yield
        except ValueError:
            if HEALTHY:
                self.seats.release()
            raise
        self.seats.release()


class Records(Dataset):
    def __init__(self, decoders, rank):
        self.decoders = decoders
        self.rank = rank

    def __len__(self):
        return 10**6

    def decode(self, index):
        time.sleep(0.002)
        if self.rank == 1 and index % 50 == 47:
            raise ValueError("truncated record")
        return float(index)

    def __getitem__(self, index):
        try:
            with self.decoders.seat():
                return self.decode(index)
        except ValueError:
            return 0.0


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    loader = DataLoader(Records(Decoders(1), rank), batch_size=8, num_workers=2, multiprocessing_context="fork")
    for step, batch in enumerate(loader):
        total = batch.sum()
        dist.all_reduce(total)
        time.sleep(0.02)
        if step == 3:
            print("READY", flush=True)


if __name__ == "__main__":
    main()
