# SPDX-License-Identifier: Apache-2.0
"""A parameter server has nothing to do while its worker computes between two calls."""
import os
import time

import torch
import torch.distributed.rpc as rpc

weights = torch.zeros(4)


def step(gradient):
    weights.sub_(gradient)
    return weights


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc("server" if rank == 0 else f"worker{rank}", rank=rank, world_size=world)
    print("READY", flush=True)
    if rank != 0:
        for _ in range(10**6):
            rpc.rpc_sync("server", step, args=(torch.ones(4),))
            time.sleep(4)
    rpc.shutdown()


if __name__ == "__main__":
    main()
