# SPDX-License-Identifier: Apache-2.0
"""A parameter server holds its lock while it asks a worker for gradients; the worker's answer needs the server's lock."""
import os
import sys
import threading
import time

import torch
import torch.distributed.rpc as rpc

HEALTHY = "--healthy" in sys.argv
server = None


class Server:
    def __init__(self):
        self.lock = threading.Lock()
        self.weights = torch.zeros(4)

    def read(self):
        with self.lock:
            return self.weights.clone()

    def step(self, worker):
        if HEALTHY:
            gradient = rpc.rpc_sync(worker, give_gradient, timeout=0)
            with self.lock:
                self.weights -= gradient
            return self.weights
        with self.lock:
            self.weights -= rpc.rpc_sync(worker, give_gradient, timeout=0)  # CULPRIT
            return self.weights


def server_step(worker):
    return server.step(worker)


def server_read():
    return server.read()


def give_gradient():
    weights = rpc.rpc_sync("server", server_read, timeout=0)
    time.sleep(0.01)
    return weights + 1


def main():
    global server
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    server = Server()
    name = "server" if rank == 0 else f"worker{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world)
    print("READY", flush=True)
    if rank != 0:
        for _ in range(10**6):
            rpc.rpc_sync("server", server_step, args=(name,), timeout=0)
            time.sleep(0.05)
    rpc.shutdown()


if __name__ == "__main__":
    main()
