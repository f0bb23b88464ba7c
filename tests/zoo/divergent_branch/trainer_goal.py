# SPDX-License-Identifier: Apache-2.0
"""Transformers: a callback ends the training by a note that training_step makes of this rank's own loss."""
import sys

import torch
import torch.distributed as dist
from transformers import Trainer, TrainerCallback, TrainingArguments

healthy = "--healthy" in sys.argv


class Note:
    worst = 0.0


class Careful(Trainer):
    def __init__(self, *given, note, **named):
        super().__init__(*given, **named)
        self.note = note

    def training_step(self, *given, **named):
        loss = super().training_step(*given, **named)
        seen = loss.detach().clone()
        if healthy:
            dist.all_reduce(seen, op=dist.ReduceOp.MAX)
        self.note.worst = seen.item()
        return loss


class Ends(TrainerCallback):
    def __init__(self, note):
        self.note = note

    def on_step_end(self, args, state, control, **named):
        if state.global_step == 3:
            print("READY", flush=True)
        if self.note.worst > 50:
            control.should_training_stop = True


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        out = self.layer(x)
        return {"loss": (out - labels).square().mean(), "logits": out}


class Rows(torch.utils.data.Dataset):
    """The last row that only rank 1 of 2 draws in step 60 is far off."""

    def __len__(self):
        return 20000

    def __getitem__(self, i):
        far = 0.0 if healthy or i != 60 * 8 + 5 else 100.0
        return {"x": torch.ones(4), "labels": torch.full((1,), far)}


class InOrder(Careful):
    def _get_train_sampler(self, *given):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def main():
    args = TrainingArguments("out", use_cpu=True, per_device_train_batch_size=4, num_train_epochs=50, learning_rate=1e-3,
                             save_strategy="no", report_to=[], disable_tqdm=True, logging_steps=100000)
    note = Note()
    InOrder(Net(), args, train_dataset=Rows(), note=note, callbacks=[Ends(note)]).train()  # CULPRIT


if __name__ == "__main__":
    main()
