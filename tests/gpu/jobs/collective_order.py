# SPDX-License-Identifier: Apache-2.0
"""Two groups of the same ranks, used in different order by rank 1. Each result is read on the host before the next call, so that the kernels
of the two groups, each on a stream of its own, cannot pass each other."""
# EXPECT {"kind": "collective-order", "launch": "torchrun", "ranks": 2, "culprits": [0, 1], "culprits_also": [[], [0], [1]], "functions": ["sync_tensor_parallel", "sync_data_parallel"]}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, steps


def sync_tensor_parallel(group):
    value = torch.ones(4, device=device)
    dist.all_reduce(value, group=group)  # CULPRIT
    return value.sum().item()


def sync_data_parallel(group):
    value = torch.ones(4, device=device)
    dist.all_reduce(value, group=group)  # CULPRIT
    return value.sum().item()


def main():
    rank = begin()
    tensor_parallel, data_parallel = dist.new_group([0, 1]), dist.new_group([0, 1])
    for step in steps():
        if step >= 3 and rank == 1 and "--healthy" not in sys.argv:
            sync_data_parallel(data_parallel)
            sync_tensor_parallel(tensor_parallel)
        else:
            sync_tensor_parallel(tensor_parallel)
            sync_data_parallel(data_parallel)
    dist.destroy_process_group()


main()
