# SPDX-License-Identifier: Apache-2.0
"""accelerate: a loop without a hang, then one with it."""
import torch
from accelerate import Accelerator
from common import TIMEOUT, Network, data, healthy_half_is_over

from ddpdoctor.integrations.accelerate import hang_report

accelerator = Accelerator(cpu=True, project_dir="logs/hung")


def train(hangs):
    model = Network(hangs)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.utils.data.DataLoader(data(), batch_size=1))
    with hang_report(accelerator, timeout=TIMEOUT):
        for batch in loader:
            accelerator.backward(model(batch[0]).sum())
            optimizer.step()
            optimizer.zero_grad()


train(False)
healthy_half_is_over("logs")
train(True)
