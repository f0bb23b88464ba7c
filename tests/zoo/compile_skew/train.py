# SPDX-License-Identifier: Apache-2.0
"""Rank 0 gets batches of ever new lengths and compiles its model for each, while rank 1 waits for it: slow, not hung. In the twin both
compile for one length, and then train. Without a C++ compiler: a cold one takes minutes on a small machine."""
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [0], "waiting": [1], "confidence": "possible", "functions": ["warm_up"], "settle": 4}
import sys

import torch
import torch.distributed as dist
from torch import nn

LENGTHS = range(8, 4000)


def warm_up(lengths):
    for length in lengths:
        torch._dynamo.reset()  # else its limit of eight recompilations ends the compiling
        model = torch.compile(nn.Sequential(nn.Linear(length, length), nn.GELU()), backend="aot_eager", dynamic=False)
        with torch.no_grad():
            model(torch.randn(4, length))  # CULPRIT


def main():
    dist.init_process_group("gloo")
    warm_up([8])  # both: the compiler is loaded
    dist.barrier()
    print("READY", flush=True)
    if dist.get_rank() == 0 and "--healthy" not in sys.argv:
        warm_up(LENGTHS)
    while True:
        dist.all_reduce(torch.ones(1000))


main()
