# SPDX-License-Identifier: Apache-2.0
"""Rank 0 retries with growing pauses, in an except block; the others wait in a barrier, longer than the hang timeout."""
import time

import torch.distributed as dist


def fetch(attempt):
    if attempt < 3:
        raise ConnectionError("the store is busy")


def with_retries(tries=5, base=2):
    for attempt in range(tries):
        try:
            return fetch(attempt)
        except ConnectionError:
            time.sleep(base * 2**attempt)


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for _ in range(2):
        if dist.get_rank() == 0:
            with_retries()
        dist.barrier()


main()
