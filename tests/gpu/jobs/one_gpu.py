# SPDX-License-Identifier: Apache-2.0
"""What a rank needs to share one GPU with the others. $DDP_BACKEND=gloo runs the same job without a GPU."""
import os
import time

import torch
import torch.distributed as dist

NCCL = os.environ.get("DDP_BACKEND", "nccl") == "nccl"
device = torch.device("cuda", 0) if NCCL else torch.device("cpu")


def begin():
    """Joins the job; returns this process's rank."""
    rank = int(os.environ["RANK"])
    if NCCL:
        os.environ["NCCL_HOSTID"] = f"host-{rank}"  # NCCL refuses two ranks on one GPU of one host
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if NCCL else "gloo")
    return rank


def steps():
    """Step numbers, at most fifty per second; READY is printed just before the third, after which a mistake may happen."""
    for step in range(int(os.environ.get("STEPS", "1000000"))):
        if step == 3:
            print("READY", flush=True)
        yield step
        time.sleep(0.02)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).to(device)
