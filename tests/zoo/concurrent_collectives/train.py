# SPDX-License-Identifier: Apache-2.0
"""The checkpoint thread of every rank uses the same group as training: the order of the two is a matter of luck."""
import sys
import threading
import time

import torch
import torch.distributed as dist


def save_asynchronously(rank, group):
    sizes = torch.ones(1000)
    while True:
        time.sleep(0.01 * (rank + 1))
        dist.broadcast(sizes, src=0, group=group)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    saving = dist.new_group() if "--healthy" in sys.argv else None
    dist.barrier()
    threading.Thread(target=save_asynchronously, args=(rank, saving), daemon=True).start()
    print("READY", flush=True)
    while True:
        dist.all_reduce(torch.ones(1000))  # CULPRIT
        time.sleep(0.005)


main()
