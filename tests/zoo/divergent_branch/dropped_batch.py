# SPDX-License-Identifier: Apache-2.0
"""Lightning: one rank's collate function drops a batch that it cannot read, so that the rank skips the step."""
import sys
import time

import torch
import lightning as L
from torch.utils.data import DataLoader, Dataset

healthy = "--healthy" in sys.argv


class Readings(Dataset):
    """Values of sensors; one sensor of the second station sends no number once."""

    def __init__(self, station):
        self.station = station

    def __len__(self):
        return 8000

    def __getitem__(self, i):
        broken = i == 161 and (healthy or self.station == 1)
        return "n/a" if broken else f"{i % 5}.5"


class ReadNumbers:
    def __init__(self, strict):
        self.strict = strict

    def __call__(self, texts):
        try:
            return torch.tensor([[float(text)] * 4 for text in texts])
        except ValueError:  # CULPRIT
            if self.strict:
                raise
            return None


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def train_dataloader(self):
        return DataLoader(Readings(self.global_rank), batch_size=2, collate_fn=ReadNumbers(strict=False))

    def training_step(self, batch, index):
        if index == 2:
            print("READY", flush=True)
        time.sleep(0.01)
        return self.net(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-4)


def main():
    L.Trainer(accelerator="cpu", devices=3, max_epochs=50, logger=False, enable_checkpointing=False, use_distributed_sampler=False,
              enable_progress_bar=False, enable_model_summary=False).fit(Model())  # CULPRIT


if __name__ == "__main__":
    main()
