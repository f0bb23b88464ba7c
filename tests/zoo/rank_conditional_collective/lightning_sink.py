# SPDX-License-Identifier: Apache-2.0
"""Lightning: a callback hands its metric to a sink at the end of each epoch; the rank chose which sink, and one of the two reduces it."""
import sys
import time

import torch
import lightning as L
from torch.utils.data import DataLoader, TensorDataset

HEALTHY = "--healthy" in sys.argv


class Reduced:
    def take(self, value):
        torch.distributed.all_reduce(value)  # CULPRIT
        return value.item()


class Dropped:
    def take(self, value):
        return None


def sink_of(rank):
    sinks = [Reduced, Dropped]
    return sinks[0 if HEALTHY else min(rank, 1)]()


class Metrics(L.Callback):
    def on_fit_start(self, trainer, module):
        self.sink = sink_of(trainer.global_rank)

    def on_train_epoch_end(self, trainer, module):
        print("READY", flush=True)
        self.sink.take(module.last.clone())


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)
        self.last = torch.zeros(1)

    def training_step(self, batch, index):
        loss = self.net(batch[0]).square().mean()
        self.last = loss.detach()
        time.sleep(0.02)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main():
    data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=4)
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=10**6 if HEALTHY else 50, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[Metrics()])
    trainer.fit(Model(), data)


if __name__ == "__main__":
    main()
