# SPDX-License-Identifier: Apache-2.0
"""One process trains on the data of another one, and most of the time waits for it in recv()."""
import multiprocessing
import time

import torch


def produce(connection):
    step = 0
    while True:
        time.sleep(6)
        connection.send(step)
        connection.recv()
        step += 1


def main():
    ours, theirs = multiprocessing.Pipe()
    producer = multiprocessing.Process(target=produce, args=(theirs,), daemon=True)
    producer.start()
    print("READY", flush=True)
    total = torch.zeros(1)
    while True:
        total += ours.recv()
        ours.send("next")


if __name__ == "__main__":
    main()
