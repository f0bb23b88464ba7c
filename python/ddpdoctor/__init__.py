# SPDX-License-Identifier: Apache-2.0
"""Names which rank, which line and why a distributed PyTorch job hangs.

    report = ddpdoctor.diagnose(22310)                  # a running job, by the pid of any of its processes
    report = ddpdoctor.diagnose(["job.ddpd"])           # files of an ended job
    print(report.findings[0].summary)

    ddpdoctor.watchdog(timeout=300)                     # in a training script: diagnoses and reports when it stops moving

The program `ddpdoctor` does the work; this package runs it. It imports only the standard library."""
from ddpdoctor.diagnosis import NotObserved, diagnose
from ddpdoctor.installed import ProgramMissing, program
from ddpdoctor.report import Finding, Location, Report
from ddpdoctor.watch import Watchdog, watchdog

__all__ = ["Finding", "Location", "NotObserved", "ProgramMissing", "Report", "Watchdog", "diagnose", "program", "watchdog"]
