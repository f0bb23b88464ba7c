# SPDX-License-Identifier: Apache-2.0
"""Trainer(callbacks=[HangReport(timeout=300)]): a hang of train, evaluate or predict is reported in the trainer's log folder."""
from typing import Any, Optional

from transformers import TrainerCallback

from ddpdoctor.integrations.steps import OnHang, StepWatch, checked


class HangReport(TrainerCallback):  # type: ignore[misc]
    """Reports a hang when no step has finished for `timeout` seconds.

    folder   instead of args.logging_dir (by default args.output_dir).
    on_hang  called as on_hang(report, folder of the report) instead of printing the report on stderr."""

    def __init__(self, timeout: float = 300.0, folder: Optional[str] = None, on_hang: Optional[OnHang] = None) -> None:
        self._timeout, self._folder, self._on_hang = checked(timeout), folder, on_hang
        self._watch: Optional[StepWatch] = None
        self._trains = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end()
        self._begin(args)
        self._trains = True

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._watch is not None:
            self._watch.beat()

    on_substep_end = on_step_end

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._begin(args)
        if self._watch is not None:
            self._watch.beat()

    def on_evaluate(self, args: Any, state: Any, control: Any, *_: Any, **__: Any) -> None:
        if not self._trains:
            self._end()

    on_predict = on_evaluate

    def _begin(self, args: Any) -> None:
        if self._watch is None:
            folder = self._folder or getattr(args, "logging_dir", None) or args.output_dir or "."
            self._watch = StepWatch(self._timeout, folder, args.local_process_index, self._on_hang)

    def _end(self) -> None:
        self._trains = False
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
