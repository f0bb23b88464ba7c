# SPDX-License-Identifier: Apache-2.0
"""One rank gathers where the others reduce: two branches of one `if` on data. NCCL compares nothing and waits on the GPU; the host stands at item()."""
# EXPECT {"kind": "mismatched-op", "launch": "torchrun", "ranks": 3, "culprits": [2], "also": ["divergent-branch"], "functions": ["synchronise"]}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, steps


def synchronise(stats):
    if stats.sum().item() > 1e6 and "--healthy" not in sys.argv:
        parts = torch.empty(3 * stats.numel(), device=device)
        dist.all_gather_into_tensor(parts, stats)  # CULPRIT
        return parts.sum().item()
    dist.all_reduce(stats)
    return stats.sum().item()


def main():
    rank = begin()
    for step in steps():
        stats = torch.ones(1 << 18, device=device)
        synchronise(stats * 50 if rank == 2 and step == 3 else stats)
    dist.destroy_process_group()


main()
