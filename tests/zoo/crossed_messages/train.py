# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [0, 1], "mode": "run"}
"""Two stages of a pipeline: the first sends the mask and then the activation, the second receives the activation first.
Re-enacts: messages of a pipeline that pair by order, not by what they are."""
import sys
import time

import torch
import torch.distributed as dist

MASK, ACTIVATION = (4,), (4, 16)


def first_stage():
    dist.send(torch.ones(MASK), dst=1)  # CULPRIT
    dist.send(torch.randn(ACTIVATION), dst=1)


def second_stage(healthy):
    mask, activation = torch.empty(MASK), torch.empty(ACTIVATION)
    if healthy:
        dist.recv(mask, src=0)
        dist.recv(activation, src=0)
    else:
        dist.recv(activation, src=0)  # CULPRIT
        dist.recv(mask, src=0)  # CULPRIT
    return activation[mask > 0]


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    while True:
        if dist.get_rank() == 0:
            first_stage()
        else:
            second_stage("--healthy" in sys.argv)
        time.sleep(0.05)


main()
