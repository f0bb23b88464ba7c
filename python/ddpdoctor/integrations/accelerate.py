# SPDX-License-Identifier: Apache-2.0
"""with hang_report(accelerator, timeout=300): reports a hang in accelerator.logging_dir. Accelerate has no callbacks, so optimizer steps
are counted."""
from typing import Any, Optional

from ddpdoctor.integrations.steps import OnHang, OptimizerWatch


def hang_report(accelerator: Any, timeout: float = 300.0, folder: Optional[str] = None, on_hang: Optional[OnHang] = None) -> OptimizerWatch:
    """Call it on every rank. Watches until the end of its `with` block, or stop(). A step is one of any torch optimizer, or a call of
    beat().

    folder   instead of accelerator.logging_dir (by default project_dir); without both, the current folder.
    on_hang  called as on_hang(report, folder of the report) instead of printing the report on stderr."""
    where = folder or getattr(accelerator, "logging_dir", None) or getattr(accelerator, "project_dir", None) or "."
    return OptimizerWatch(timeout, where, accelerator.local_process_index, on_hang)
