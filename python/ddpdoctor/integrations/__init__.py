# SPDX-License-Identifier: Apache-2.0
"""Hang reports in the log folders of training frameworks (docs/integrations.md). Each module is imported by name and loads its framework alone:

    from ddpdoctor.integrations.lightning import HangReport        # Trainer(callbacks=[HangReport(timeout=300)])
    from ddpdoctor.integrations.transformers import HangReport     # Trainer(callbacks=[HangReport(timeout=300)])
    from ddpdoctor.integrations.accelerate import hang_report      # with hang_report(accelerator, timeout=300): …"""
