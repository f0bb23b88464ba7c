# SPDX-License-Identifier: Apache-2.0
"""Two process groups over the same ranks, used in different order: a cycle over the groups."""
import sys
import time

import torch
import torch.distributed as dist


def sync_tensor_parallel(group):
    dist.all_reduce(torch.ones(4), group=group)  # CULPRIT


def sync_data_parallel(group):
    dist.all_reduce(torch.ones(4), group=group)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    tp = dist.new_group([0, 1])
    dp = dist.new_group([0, 1])
    for step in range(100000):
        if step == 3:
            print("READY", flush=True)
        if step >= 3 and dist.get_rank() == 1 and "--healthy" not in sys.argv:
            sync_data_parallel(dp)
            sync_tensor_parallel(tp)
        else:
            sync_tensor_parallel(tp)
            sync_data_parallel(dp)
        time.sleep(0.02)


main()
