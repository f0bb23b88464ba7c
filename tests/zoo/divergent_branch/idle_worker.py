# SPDX-License-Identifier: Apache-2.0
"""A server gives each request to all workers, and waits for an answer. Rank 1 refuses a request that rank 0 runs, and waits for the next."""
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

HEALTHY = "--healthy" in sys.argv


class Worker:
    def __init__(self, rank, inbox, outbox):
        self.rank, self.inbox, self.outbox = rank, inbox, outbox
        self.free = int(pathlib.Path(f"free.{rank}").read_text())

    def run(self, tokens):
        if tokens > self.free:  # CULPRIT
            return
        out = torch.ones(tokens)
        dist.all_reduce(out)
        if self.rank == 0:
            self.outbox.put(float(out.sum()))

    def loop(self):
        while True:
            self.run(self.inbox.get())  # CULPRIT


def work(rank, port, inboxes, outbox):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    print("READY", flush=True)
    Worker(rank, inboxes[rank], outbox).loop()


def serve(port):
    context = mp.get_context("spawn")
    for rank in range(2):
        pathlib.Path(f"free.{rank}").write_text("40" if rank == 1 and not HEALTHY else "200")
    inboxes, outbox = [context.Queue() for _ in range(2)], context.Queue()
    for rank in range(2):
        context.Process(target=work, args=(rank, port, inboxes, outbox), daemon=True).start()
    for request in range(10**6):
        for inbox in inboxes:
            inbox.put(30 + request % 31)
        outbox.get()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
