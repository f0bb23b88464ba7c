# SPDX-License-Identifier: Apache-2.0
"""Three DataLoader workers share two decoder slots; a bad image raises while one is held, and the slot is never released."""
import multiprocessing
import sys
import time

from torch.utils.data import DataLoader, Dataset

HEALTHY = "--healthy" in sys.argv


class Images(Dataset):
    def __init__(self, slots):
        self.slots = slots

    def __len__(self):
        return 10**6

    def decode(self, index):
        if index % 7 == 5:
            raise ValueError("truncated image")
        time.sleep(0.002)
        return index

    def __getitem__(self, index):
        self.slots.acquire()  # CULPRIT
        try:
            image = self.decode(index)
        except ValueError:
            print("READY", flush=True)
            if HEALTHY:
                self.slots.release()
            return -1
        self.slots.release()
        return image


def main():
    loader = DataLoader(Images(multiprocessing.Semaphore(2)), batch_size=2, num_workers=3)
    total = 0
    for batch in loader:
        total += int(batch.sum())


if __name__ == "__main__":
    main()
