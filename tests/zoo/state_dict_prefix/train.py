# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of the wrapped model is loaded into the bare one."""
import sys

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 4))
    saved = model.module.state_dict() if "--healthy" in sys.argv else model.state_dict()
    nn.Linear(4, 4).load_state_dict(saved)  # CULPRIT
    dist.destroy_process_group()


main()
