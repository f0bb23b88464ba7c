# SPDX-License-Identifier: Apache-2.0
"""Two nodes are started with different --rdzv-id, typed by hand: each waits for the other and no rank is ever started."""
import sys
import time

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for _ in range(3000 if "--healthy" in sys.argv else 0):  # a minute: torchrun's ranks outlive a shell that is killed
        dist.all_reduce(torch.ones(4))
        time.sleep(0.02)
    dist.destroy_process_group()


main()
