# SPDX-License-Identifier: Apache-2.0
"""A home-made lock (O_CREAT | O_EXCL in a loop) finds the file of a run that was killed a day ago."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


class FileLock:
    def __init__(self, path):
        self.path = path

    def __enter__(self):
        while True:
            try:
                self.fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR)
                break
            except FileExistsError:
                time.sleep(0.1)  # CULPRIT
        return self

    def __exit__(self, *args):
        os.close(self.fd)
        os.unlink(self.path)


def prepare(folder):
    with FileLock(os.path.join(folder, ".vocab.lock")):
        open(os.path.join(folder, "vocab.txt"), "w").write("a b c")


def main():
    dist.init_process_group("gloo")
    folder = os.path.join(os.getcwd(), "cache")
    os.makedirs(folder, exist_ok=True)
    dist.barrier()
    if not healthy and dist.get_rank() == 0:
        path = os.path.join(folder, ".vocab.lock")
        open(path, "w").close()
        os.utime(path, (0, time.time() - 86400))
    dist.barrier()
    print("READY", flush=True)
    prepare(folder)
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
