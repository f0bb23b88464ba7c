# SPDX-License-Identifier: Apache-2.0
"""A loop logs the exception of a bad record and continues; the step that it skipped on rank 1 had a collective."""
import logging
import sys
import time

import torch
import torch.distributed as dist


def parse(line):
    return [float(field) for field in line.split(",")]  # CULPRIT


def step(line):
    values = torch.tensor(parse(line))
    dist.all_reduce(values)


def run(lines):
    for line in lines:
        try:
            step(line)
        except ValueError:
            logging.exception("a bad record was left out")
        time.sleep(0.01)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    lines = ["1.5,2.5"] * 60
    if rank == 1 and "--healthy" not in sys.argv:
        lines[23] = "1.5,n/a"
    print("READY", flush=True)
    run(lines)
    dist.all_gather_object([None] * dist.get_world_size(), len(lines))
    dist.barrier()
    dist.destroy_process_group()


main()
