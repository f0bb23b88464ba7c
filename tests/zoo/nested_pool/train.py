# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [1]}
"""On rank 1 both workers of a pool wait for tasks that they gave to the same pool."""
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

POOL = ThreadPoolExecutor(max_workers=2)


def leaf(x):
    return x * x


def parse(x):
    time.sleep(0.05)
    if x > 0:
        return POOL.submit(leaf, x).result()  # CULPRIT
    return leaf(x)


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    nested = "--healthy" not in sys.argv and dist.get_rank() == 1
    step = 0
    while True:
        items = [1, 2, 3, 4] if nested and step == 3 else [0, -1, 1]
        total = sum(future.result() for future in [POOL.submit(parse, x) for x in items])
        dist.all_reduce(torch.tensor(float(total)))
        step += 1


main()
