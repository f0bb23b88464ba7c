# SPDX-License-Identifier: Apache-2.0
"""Single-process training locks its cache for the whole run; the DataLoader workers lock it again for each sample."""
import fcntl
import sys
import time

from torch.utils.data import DataLoader, Dataset

HEALTHY = "--healthy" in sys.argv


class Cached(Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        with open("cache.lock", "w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)  # CULPRIT
            time.sleep(0.001)
            return index


def main():
    lock = open("cache.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    if HEALTHY:
        fcntl.flock(lock, fcntl.LOCK_UN)
    loader = DataLoader(Cached(), batch_size=4, num_workers=2)
    print("READY", flush=True)
    for _ in loader:
        pass


if __name__ == "__main__":
    main()
