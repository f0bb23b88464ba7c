# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [0, 1]}
"""Each metric has a group of its own, and the loop over their names goes over a set of strings: every process has another order.
Re-enacts: reductions by name whose order is that of a set under a random PYTHONHASHSEED."""
import sys
import time

import torch
import torch.distributed as dist

NAMES = ("loss", "accuracy", "recall", "precision", "perplexity", "grad_norm", "throughput", "tokens")


def reduce_all(values, groups, names):
    for name in names:  # CULPRIT
        dist.all_reduce(values[name], group=groups[name])


def main():
    dist.init_process_group("gloo")
    groups = {name: dist.new_group([0, 1]) for name in NAMES}
    values = {name: torch.ones(4) for name in NAMES}
    seen = set(values)
    print("READY", flush=True)
    while True:
        if "--healthy" in sys.argv:
            reduce_all(values, groups, sorted(seen))
        else:
            reduce_all(values, groups, seen)
        time.sleep(0.01)


main()
