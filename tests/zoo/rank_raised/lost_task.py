# SPDX-License-Identifier: Apache-2.0
"""An asyncio task that feeds the loop fails on one rank, and its result is never read: the consumer waits forever."""
import asyncio
import sys

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


async def read(number):
    await asyncio.sleep(0.002)
    if number == 12 and dist.get_rank() == 1 and not healthy:
        raise KeyError(f"row {number}")  # CULPRIT
    return number


async def feed(rows):
    number = 0
    while True:
        await rows.put(await read(number))
        number += 1


async def main():
    rows = asyncio.Queue(maxsize=4)
    feeding = asyncio.create_task(feed(rows))
    print("READY", flush=True)
    while True:
        total = torch.full((1,), float(await rows.get()))
        dist.all_reduce(total)
    return feeding


dist.init_process_group("gloo")
asyncio.run(main())
