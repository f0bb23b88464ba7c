# SPDX-License-Identifier: Apache-2.0
"""The first rank of each node except one logs, and logging gathers from all ranks: rank 2 alone waits in it."""
# EXPECT {"kind": "rank-conditional-collective", "culprits": [2], "hosts": ["node2"], "also": ["divergent-branch"]}
import os
import sys
import time

import torch
import torch.distributed as dist


def log_metrics(loss):
    gathered = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, loss)  # CULPRIT
    return sum(gathered)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(100000):
        loss = torch.ones(1)
        dist.all_reduce(loss)
        if step == 5:
            print("READY", flush=True)
            if rank == 2 or "--healthy" in sys.argv:
                log_metrics(loss)
        time.sleep(0.02)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
