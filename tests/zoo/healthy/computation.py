# SPDX-License-Identifier: Apache-2.0
"""One long computation on every rank between two collectives."""
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    dist.barrier()
    print("READY", flush=True)
    matrix = torch.randn(1500, 1500)
    while True:
        for _ in range(50):
            matrix = torch.tanh(matrix @ matrix)
        dist.all_reduce(matrix)


main()
