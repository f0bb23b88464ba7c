# SPDX-License-Identifier: Apache-2.0
import torch.distributed as dist


def average(module):
    parts = module.state_dict()
    for key in sorted(parts):
        dist.all_reduce(parts[key])  # CULPRIT
        parts[key] /= dist.get_world_size()
    return parts
