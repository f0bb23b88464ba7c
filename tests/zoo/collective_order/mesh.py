# SPDX-License-Identifier: Apache-2.0
"""Four ranks in a mesh of rows and columns; every other cell sweeps the columns first, so the waiting goes round over four groups."""
import sys
import time

import torch
import torch.distributed as dist


def reduce_rows(value, row):
    dist.all_reduce(value, group=row)


def reduce_columns(value, column):
    dist.all_reduce(value, group=column)


def sweep(value, row, column, turned):
    passes = [lambda: reduce_rows(value, row), lambda: reduce_columns(value, column)]
    if turned:
        passes.reverse()
    for one in passes:
        one()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    turned = (rank // 2 + rank % 2) % 2 == 1 and "--healthy" not in sys.argv
    print("READY", flush=True)
    while True:
        sweep(torch.ones(4), rows[rank // 2], columns[rank % 2], turned)
        time.sleep(0.02)


main()
