# SPDX-License-Identifier: Apache-2.0
"""Accelerate: the project's own decorator hands its function to on_main_process, and the function gathers."""
import functools
import sys
import time

import torch
from accelerate import Accelerator

healthy = "--healthy" in sys.argv


def spoken_once(fn):
    @functools.wraps(fn)
    def wrapped(board, *given):
        return board.runner.on_main_process(fn)(board, *given)

    return wrapped


class Board:
    def __init__(self, runner):
        self.runner = runner

    @spoken_once
    def total(self, loss):
        self.show(self.runner.gather(loss).mean())  # CULPRIT

    @spoken_once
    def show(self, mean):
        print("mean", mean.item(), flush=True)


def main():
    runner = Accelerator(cpu=True)
    model = torch.nn.Linear(8, 2)
    model, opt = runner.prepare(model, torch.optim.SGD(model.parameters(), 0.01))
    board = Board(runner)
    for step in range(100000):
        loss = model(torch.randn(4, 8)).square().mean()
        runner.backward(loss)
        opt.step()
        opt.zero_grad()
        if step == 3:
            print("READY", flush=True)
        if step % 20 == 19:
            if healthy:
                board.show(runner.gather(loss.detach()).mean())
            else:
                board.total(loss.detach())
        time.sleep(0.02)


if __name__ == "__main__":
    main()
