# SPDX-License-Identifier: Apache-2.0
"""One rank of the real job of a chaos run: ranks.py STEPS DIES. With DIES, rank 1 ends by SIGKILL before the last collective."""
import os
import signal
import sys

import torch
import torch.distributed as dist

torch.set_num_threads(1)
steps, dies = int(sys.argv[1]), sys.argv[2] == "1"
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + os.environ["CHAOS_STORE"], rank=rank, world_size=2)
total = 0.0
for step in range(steps):
    if dies and rank == 1 and step == steps - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    value = torch.full((64,), float(step + rank))
    try:
        dist.all_reduce(value)
    except RuntimeError:
        print("lost its peer in step", step, flush=True)
        os._exit(3)
    total += value[0].item()
print(rank, total, flush=True)
if not dies:
    dist.barrier()
os._exit(0)
