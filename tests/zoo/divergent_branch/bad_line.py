# SPDX-License-Identifier: Apache-2.0
"""All ranks process equally many lines; a helper returns None for a bad one, and its rank skips that line's reduction."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def value_of(line):
    try:
        return float(line)
    except ValueError:  # CULPRIT
        return None


def main():
    dist.init_process_group("gloo")
    lines = [str(n) for n in range(40)]
    if dist.get_rank() == 1 or HEALTHY:
        lines[17] = "n/a"
    print("READY", flush=True)
    for epoch in range(10**6 if HEALTHY else 1):
        for line in lines:
            value = value_of(line)
            if value is None:
                continue
            dist.all_reduce(torch.tensor([value]))
            time.sleep(0.01)
        dist.barrier()  # CULPRIT
    dist.destroy_process_group()


main()
