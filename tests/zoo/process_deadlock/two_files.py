# SPDX-License-Identifier: Apache-2.0
"""The trainer locks the index and then the cache, its indexer the cache and then the index."""
import fcntl
import multiprocessing
import sys
import time

import torch

HEALTHY = "--healthy" in sys.argv


def locked(path):
    handle = open(path, "w")
    fcntl.flock(handle, fcntl.LOCK_EX)  # CULPRIT
    return handle


def refresh(paths, pause):
    first = locked(paths[0])
    time.sleep(pause)
    second = locked(paths[1])
    second.close()
    first.close()


def index():
    while True:
        refresh(["index.lock", "cache.lock"] if HEALTHY else ["cache.lock", "index.lock"], 0.4)
        time.sleep(0.2)


def main():
    multiprocessing.get_context("fork").Process(target=index, daemon=True).start()
    print("READY", flush=True)
    weights = torch.zeros(8)
    while True:
        refresh(["index.lock", "cache.lock"], 0.3)
        weights += 1
        time.sleep(0.2)


if __name__ == "__main__":
    main()
