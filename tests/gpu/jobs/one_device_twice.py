# SPDX-License-Identifier: Apache-2.0
"""No rank chooses its device, so that both use GPU 0 of their host. (Healthy, they claim to be on two hosts, as all other jobs here do.)"""
# EXPECT {"kind": "wrong-device", "launch": "torchrun", "ranks": 2, "culprits": [0, 1], "culprits_also": [[0], [1], []], "functions": ["main", "<module>"], "mode": "run", "gloo": []}
import os
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, steps


def main():
    if "--healthy" in sys.argv:
        begin()
    else:
        os.environ.pop("NCCL_HOSTID", None)
        dist.init_process_group("nccl")
    for _ in steps():
        total = torch.ones(1, device=device)
        dist.all_reduce(total)  # CULPRIT
        total.item()
    dist.destroy_process_group()


main()
