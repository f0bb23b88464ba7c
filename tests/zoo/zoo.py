#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the zoo: real jobs that hang, each with a healthy twin (`--healthy`), and asks ddpdoctor what it says.

  zoo.py [NAME…] [--mode attach|run] [--device simulated|cuda] [--ci] [--twins|--no-twins] [--repeat N] [--shard I/N] [--keep DIR]

A folder is a kind; its expected.json (or, in a script, a line `# EXPECT {…}` for each) lists the cases: script, launch (torchrun, python,
shell, mpirun (a C file or Python), or "command": a shell line with {python}, {port} and {healthy}), ranks, culprits, waiting, confidence
(likely or certain unless told), and what else is accepted; `requires` names Python modules, `needs` programs (or modules, as `module:NAME`, or folders, as
`writable:PATH`) without which a case is skipped, and says so. The culprit's line is marked `# CULPRIT` (`// CULPRIT` in C) in the script and found by search.
--device simulated|cuda: the same scripts as jobs on GPUs (simulated.py), which are simulated, or on one real GPU that all ranks share.
jobs.py starts and ends them, judge.py compares. The tool is $DDPDOCTOR. Ends non-zero when a side is wrong; the last line counts."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import HERE, cases, missing_need, told_cases  # noqa: F401 - HERE and told_cases for who imports this file
from jobs import Job, free_port, tree  # noqa: F401
from judge import marked_lines, problems  # noqa: F401

TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
TORCH_ABORTED = "terminate called without an active exception"  # torch 2.13 over gloo, in one of three jobs that end without destroy_process_group


def attach(folder, case, healthy, keep):
    job = Job(folder, case, healthy)
    try:
        if not job.wait_ready(healthy):
            return [f"the job did not come up: {job.output()[-400:]}"], None
        target = job.folder / "report.json"
        started = time.time()
        done = subprocess.run([TOOL, "attach", str(job.process.pid), "-o", str(target)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        seconds = time.time() - started
        if done.returncode not in (0, 1):
            return [f"attach ended with {done.returncode}: {done.stderr.strip()[:300]}"], done.stdout
        report = json.loads(target.read_text())
        if keep:
            stem = f"{folder}-{Path(case['script']).with_suffix('').as_posix().replace('/', '_')}{'-healthy' if healthy else ''}"
            (Path(keep) / f"{stem}.json").write_text(json.dumps(report, indent=1))
            (Path(keep) / f"{stem}.txt").write_text(done.stdout + done.stderr + f"\n[{seconds:.2f} s]\n")
            (Path(keep) / f"{stem}.log").write_text(job.output())
        if job.process.poll() is not None:
            return ["the job ended while it was observed"], done.stdout
        return problems(folder, case, healthy, report, done.returncode), done.stdout
    finally:
        job.end()


def run(folder, case, healthy, keep):
    reports = Path(tempfile.mkdtemp(prefix="ddpzoo_report_"))
    job = Job(folder, case, healthy, prefix=(TOOL, "run", "--hang-timeout", "6", "--on-hang", "kill", "--always", "--report-dir", str(reports), "--"))
    try:
        limit = time.time() + (40 if healthy or case.get("healthy_only") else 90)
        while job.process.poll() is None and time.time() < limit:
            time.sleep(0.2)
        ours = job.process.poll() is None
        if ours:
            job.process.send_signal(signal.SIGINT)
            try:
                job.process.wait(30)
            except subprocess.TimeoutExpired:
                return ["ddpdoctor run did not end after SIGINT"], job.output()
        file = reports / "report.json"
        if not file.exists():
            return [f"no report (exit {job.process.returncode})"], job.output()
        report = json.loads(file.read_text())
        if keep:
            stem = f"run-{folder}-{Path(case['script']).with_suffix('').as_posix().replace('/', '_')}{'-healthy' if healthy else ''}"
            (Path(keep) / f"{stem}.json").write_text(json.dumps(report, indent=1))
            (Path(keep) / f"{stem}.log").write_text(job.output())
        return problems(folder, case, healthy, report, None if ours else job.process.returncode, "run"), job.output()
    finally:
        job.end()
        shutil.rmtree(reports, ignore_errors=True)


def sides(case, options):
    """The sides to run, faulty before healthy: those that the case has and that were requested."""
    both = [False] if case.get("healthy_only") or options.no_twins or case.get("healthy") is False else [False, True]
    return [healthy for healthy in both if healthy or case.get("healthy_only") or not options.twins]


def told(observe, folder, case, healthy, options):
    """Runs one side of a case and prints the judgement; true if it is right."""
    label = f"{folder}/{case['script']}{' --healthy' if healthy else ''}"
    wrong, output = observe(folder, case, healthy, options.keep)
    for _ in range(3):  # not caused by ddpdoctor, and rightly reported as a crash: such a run says nothing about a healthy job
        if not (wrong and healthy and TORCH_ABORTED in (output or "")):
            break
        print(f"again {label}: torch aborted at exit", flush=True)
        wrong, output = observe(folder, case, healthy, options.keep)
    if wrong and options.ci:  # a shared machine: the second run separates a defect from a chance failure, and both are printed
        print(f"again {label}: {wrong[0]}", flush=True)
        wrong, output = observe(folder, case, healthy, options.keep)
    print(f"{'MISS' if wrong else 'ok  '} {label}" + "".join(f"\n       {w}" for w in wrong), flush=True)
    if wrong and options.verbose and output:
        print("\n".join("     | " + line for line in output.splitlines()[:60]), flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mode", choices=["attach", "run", "stacks", "bare", "attach+stacks", "bare+stacks"])
    parser.add_argument("--device", choices=["simulated", "cuda"], help="run the cases over the simulated device (tests/doubles/simulated_device), or over NCCL on a real GPU")
    parser.add_argument("--ci", action="store_true")
    parser.add_argument("--twins", action="store_true", help="healthy twins only")
    parser.add_argument("--no-twins", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--shard", default="1/1", help="only each N-th case, from the I-th on: several of them at once load the machine")
    parser.add_argument("--keep")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    if options.device:
        import simulated
        return simulated.main(options)
    options.mode = options.mode or "attach"
    observe = attach if options.mode == "attach" else run
    counts = {"faulty": [0, 0], "twin": [0, 0]}  # right, wrong
    shard, shards = (int(word) for word in options.shard.split("/"))
    for _ in range(options.repeat):
        for folder, case in list(cases(options.names, options.ci, options.mode))[shard - 1::shards]:
            label = f"{folder}/{case['script']}"
            if lack := missing_need(case):
                print(f"skip {label}: {lack}", flush=True)
                continue
            for healthy in sides(case, options):
                good = told(observe, folder, case, healthy, options)
                counts["twin" if healthy or case.get("healthy_only") else "faulty"][0 if good else 1] += 1
    failed = counts["faulty"][1] + counts["twin"][1]
    for name, (right, wrong) in counts.items():
        print(f"zoo ({options.mode}): {right} of {right + wrong} {'faulty sides named' if name == 'faulty' else 'healthy sides met with silence'}")
    print(f"{counts['faulty'][0] + counts['twin'][0]} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
