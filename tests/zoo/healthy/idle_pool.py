# SPDX-License-Identifier: Apache-2.0
"""Two ranks train; the workers of rank 0's pool have nothing to do: one reads the queue, the others wait for its lock."""
import multiprocessing
import os
import time

import torch
import torch.distributed as dist


def main():
    pool = multiprocessing.get_context("fork").Pool(3) if os.environ["RANK"] == "0" else None
    dist.init_process_group("gloo")
    print("READY", flush=True)
    while True:
        dist.all_reduce(torch.ones(8))
        time.sleep(0.3)


if __name__ == "__main__":
    main()
