# SPDX-License-Identifier: Apache-2.0
"""Hang reports in the log folders of training frameworks (docs/integrations.md). Import each module by name; it loads only its own
framework:

    from ddpdoctor.integrations.lightning import HangReport        # Trainer(callbacks=[HangReport(timeout=300)])
    from ddpdoctor.integrations.transformers import HangReport     # Trainer(callbacks=[HangReport(timeout=300)])
    from ddpdoctor.integrations.accelerate import hang_report      # with hang_report(accelerator, timeout=300): …
    from ddpdoctor.integrations.ray_train import hang_report       # with hang_report(timeout=300): …, in train_loop_per_worker"""
