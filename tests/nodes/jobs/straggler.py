# SPDX-License-Identifier: Apache-2.0
"""Rank 5, on the third node, works alone for a long time: slow, not hung."""
# EXPECT {"kind": "long-phase", "culprits": [5], "hosts": ["node3"], "confidence": "possible", "functions": ["tokenize"], "healthy": false}
import time

import torch
import torch.distributed as dist


def tokenize():
    words = 0
    end = time.time() + 100
    while time.time() < end:
        words += sum(len(str(i)) for i in range(1000))
    return words


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if dist.get_rank() == 5:
        tokenize()  # CULPRIT
    dist.barrier()
    dist.all_reduce(torch.ones(1))


main()
