# SPDX-License-Identifier: Apache-2.0
"""All ranks go over equally many rows; a context of the program's own ends the exception of a bad one, and its rank skips that row's reduction."""
import contextlib
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


class Rows:
    def __init__(self, rank):
        self.texts = [str(n) for n in range(40)]
        if rank == 1 or HEALTHY:
            self.texts[17] = "n/a"

    def __iter__(self):
        for text in self.texts:
            yield text.strip()


@contextlib.contextmanager
def lenient(skipped):
    try:
        yield
    except ValueError as error:
        skipped.append(error)


def train(rows):
    skipped = []
    for row in rows:
        with lenient(skipped):  # CULPRIT
            value = torch.tensor([float(row)])
            dist.all_reduce(value)
        time.sleep(0.01)
    dist.barrier()  # CULPRIT
    return skipped


def main():
    dist.init_process_group("gloo")
    rows = Rows(dist.get_rank())
    print("READY", flush=True)
    for epoch in range(10**6 if HEALTHY else 1):
        train(rows)
    dist.destroy_process_group()


main()
