# SPDX-License-Identifier: Apache-2.0
"""A soft lock of filelock left by a run on another machine: one rank polls for it, the other one waits."""
import os
import sys
import time

import torch.distributed as dist
from filelock import SoftFileLock

PATH = os.path.join("cache", "tokenizer.lock")


def prepare():
    with SoftFileLock(PATH):  # CULPRIT
        time.sleep(0.01)


def main():
    dist.init_process_group("gloo")
    os.makedirs("cache", exist_ok=True)
    if "--healthy" not in sys.argv and dist.get_rank() == 0:
        with open(PATH, "w") as file:
            file.write("4194303\nsome-other-host\n")
        os.utime(PATH, (0, time.time() - 86400))
    print("READY", flush=True)
    dist.barrier()
    while True:
        if dist.get_rank() == 0:
            prepare()
        dist.barrier()
        time.sleep(0.02)


main()
