# SPDX-License-Identifier: Apache-2.0
"""Trainer and evaluator exchange weights over one Pipe: both send first, and neither reads."""
import multiprocessing
import sys
import time

import torch

HEALTHY = "--healthy" in sys.argv


def exchange(connection, mine):
    if HEALTHY:
        time.sleep(0.5)
        received = connection.recv()
        connection.send(mine)
        return received
    connection.send(mine)  # CULPRIT
    return connection.recv()


def evaluate(connection):
    weights = torch.zeros(200_000)
    while True:
        weights = torch.tensor(exchange(connection, weights.tolist()))


def main():
    ours, theirs = multiprocessing.Pipe()
    evaluator = multiprocessing.Process(target=evaluate, args=(theirs,), daemon=True)
    evaluator.start()
    print("READY", flush=True)
    weights = torch.ones(200_000).tolist()
    for _ in range(10**6):
        ours.send(weights)  # CULPRIT
        weights = ours.recv()


if __name__ == "__main__":
    main()
