# SPDX-License-Identifier: Apache-2.0
"""Accelerate: the main process alone gathers the loss."""
import sys
import time

import torch
from accelerate import Accelerator

healthy = "--healthy" in sys.argv


def main():
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(8, 2)
    opt = torch.optim.SGD(model.parameters(), 0.01)
    model, opt = accelerator.prepare(model, opt)
    for step in range(100000):
        loss = model(torch.randn(4, 8)).square().mean()
        accelerator.backward(loss)
        opt.step()
        opt.zero_grad()
        if step == 3:
            print("READY", flush=True)
        if step % 20 == 19:
            if accelerator.is_main_process or healthy:
                mean = accelerator.gather(loss.detach()).mean()  # CULPRIT
                accelerator.print(step, mean.item())
        time.sleep(0.02)


if __name__ == "__main__":
    main()
