#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the zoo: real jobs that hang, each with a healthy twin (`--healthy`), and asks ddpdoctor what it says.

  zoo.py [NAME…] [--mode attach|run] [--ci] [--twins|--no-twins] [--repeat N] [--shard I/N] [--keep DIR]

A folder is a kind; its expected.json (or, in a script, a line `# EXPECT {…}` for each) lists the cases: script, launch (torchrun, python,
shell, mpirun (a C file or Python), or "command": a shell line with {python}, {port} and {healthy}), ranks, culprits, and what else is
accepted; `requires` names Python modules, `needs` programs (or modules, as `module:NAME`) without which a case is skipped, and says so.
The culprit's line is marked `# CULPRIT` (`// CULPRIT` in C) in the script and found by search. The tool is $DDPDOCTOR. Ends non-zero when
a case is wrong; the last line counts."""
import argparse
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
UNITS = os.sysconf("SC_CLK_TCK")
CI_CASES = {"rank_conditional_collective/train.py", "unused_parameters/train.py", "uneven_inputs/train.py", "mismatched_op/train.py",
            "dataloader_worker_stuck/train.py", "lock_deadlock/train.py", "rendezvous_incomplete/train.py", "missing_rank/train.py",
            "p2p_deadlock/both_receive.py", "stale_file_lock/baton.py", "healthy/dataloader.py", "healthy/barrier.py"}


def stat(pid):
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2:].split()


def alive(pid):
    try:
        return stat(pid)[0] not in "ZX"
    except OSError:
        return False


def tree(root):
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                children.setdefault(int(stat(name)[1]), []).append(int(name))
            except (OSError, ValueError):
                pass
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def session(leader):
    """Every process of the session that `leader` began; also those whose parents are gone."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(stat(name)[3]) == leader:
                found.append(int(name))
        except (OSError, ValueError):
            pass
    return found


def ticks(root):
    total = 0
    for pid in tree(root):
        try:
            fields = stat(pid)
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total


def free_port():
    """Not one that the system gives to outgoing connections: another job would have it before this one listens."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Job:
    """One case running under a shell, output in a file; ended by pid, children first."""

    def __init__(self, folder, case, healthy, prefix=(), work=None):
        self.case, self.port = case, free_port()
        self.folder = Path(work or tempfile.mkdtemp(prefix="ddpzoo_"))
        shutil.copytree(HERE / folder, self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "expected.json"))
        self.log = self.folder / "job.log"
        (self.folder / "cmd.sh").write_text(self.script(healthy))
        environment = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")}
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", PYTHONUNBUFFERED="1", ZOO_PORT=str(self.port))
        environment.update(case.get("environment", {}))
        stdin = subprocess.PIPE if case.get("stdin") == "pipe" else subprocess.DEVNULL
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*prefix, "bash", "cmd.sh"], cwd=self.folder, env=environment, stdin=stdin, stdout=log, stderr=log,
                                            start_new_session=True)

    def script(self, healthy):
        case, python = self.case, sys.executable
        arguments = [case["script"], *(["--healthy"] if healthy else [])]
        words = " ".join(arguments)
        if case["launch"] == "torchrun":
            return (f"{python} -m torch.distributed.run --nnodes=1 --nproc_per_node={case['ranks']} --master_addr=127.0.0.1 "
                    f"--master_port={self.port} {words}\nexit $?\n")
        if case["launch"] == "mpirun":
            return self.mpi_script(words)
        if case["launch"] == "python":
            return f"{python} {words}\nexit $?\n"
        if case["launch"] == "command":
            filled = case["command"].replace("{python}", python).replace("{port}", str(self.port)).replace("{healthy}", "--healthy" if healthy else "")
            return f"{filled}\nexit $?\n"
        started = case["ranks"] if healthy else case.get("started", case["ranks"])
        lines = [f"export WORLD_SIZE={case['ranks']} MASTER_ADDR=127.0.0.1 MASTER_PORT={self.port}", "exec 3<&0"]
        lines += [f"RANK={r} LOCAL_RANK={r} {python} {words} <&3 &" for r in range(started)]
        return "\n".join([*lines, "wait", ""])

    def mpi_script(self, words):
        """$ZOO_MPI chooses among several installed ones: openmpi, mpich; empty = what mpirun is."""
        case, suffix = self.case, "." + os.environ["ZOO_MPI"] if os.environ.get("ZOO_MPI") else ""
        program = sys.executable + " " + words
        if case["script"].endswith(".c"):
            built = self.folder / case["script"][:-2]
            subprocess.run(["mpicc" + suffix, "-g", "-O1", "-pthread", "-o", str(built), str(self.folder / case["script"])], check=True)
            program = words.replace(case["script"], f"./{built.name}", 1)
        text = subprocess.run(["mpirun" + suffix, "--version"], capture_output=True, text=True).stdout
        rest = "--oversubscribe " if "Open MPI" in text or "open-mpi" in text else ""
        return f"mpirun{suffix} {rest}-n {case['ranks']} {program}\nexit $?\n"

    def output(self):
        return self.log.read_text(errors="replace")

    def wait_ready(self, healthy, limit=90):
        """Every rank has said READY and the job has settled; false when it ended or never came up."""
        case, start = self.case, time.time()
        wanted = case.get("healthy_ready") if healthy and case.get("healthy_ready") else case.get("ready", case.get("started", case["ranks"]))
        while self.output().count("READY") < wanted:
            if self.process.poll() is not None or time.time() - start > limit:
                return False
            time.sleep(0.1)
        settle, calm, last = time.time(), 0, ticks(self.process.pid)
        while time.time() - settle < 6 and calm < 2:
            time.sleep(0.5)
            now = ticks(self.process.pid)
            calm = calm + 1 if now - last < 0.1 * UNITS else 0
            last = now
        time.sleep(max(0.0, case.get("settle", 1.5) - (time.time() - settle)))
        return self.process.poll() is None

    def end(self):
        for _ in range(20):
            pids = [p for p in dict.fromkeys([*tree(self.process.pid), *session(self.process.pid)]) if p != self.process.pid and alive(p)]
            for pid in [*reversed(pids), self.process.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            if self.process.poll() is not None and not pids:
                break
            time.sleep(0.1)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def marked_lines(folder, case):
    text = (HERE / folder / case.get("source", case["script"])).read_text().splitlines()
    return {number for number, line in enumerate(text, 1) if "# CULPRIT" in line or "// CULPRIT" in line}


def missing_need(case):
    """What this machine lacks for a case; None when it lacks nothing."""
    for need in case.get("needs", []):
        if need.startswith("module:"):
            if importlib.util.find_spec(need[7:]) is None:
                return f"no Python module {need[7:]}"
        elif shutil.which(need) is None:
            return f"no {need}"
    return None


def problems(folder, case, healthy, report):
    """What is wrong with the report, each a sentence; empty when it is right."""
    sure = [f for f in report.get("findings", []) if f.get("confidence") in ("certain", "likely")]
    if healthy or case.get("healthy_only"):
        return [f"false alarm: {f['kind']} ({f['confidence']}): {f['summary']}" for f in sure if f["kind"] != "undetermined"]
    if not report.get("findings"):
        return [f"no finding (verdict {report.get('verdict')})"]
    first, wrong = report["findings"][0], []
    kinds = [case["kind"], *case.get("also", [])]
    if first["kind"] not in kinds:
        wrong.append(f"kind {first['kind']} instead of {kinds[0]}: {first['summary']}")
    if first.get("culprits") not in [case["culprits"], *case.get("culprits_also", [])]:
        wrong.append(f"culprits {first.get('culprits')} instead of {case['culprits']}")
    if case.get("location", True):
        place = (first.get("locations") or [{}])[0]
        lines = marked_lines(folder, case)
        script = case.get("location_file", Path(case["script"]).name)
        if Path(place.get("file") or "").name != script or (place.get("line") not in lines and place.get("function") not in case.get("functions", [])):
            wrong.append(f"location {place.get('file')}:{place.get('line')} ({place.get('function')}) instead of {case['script']}:{sorted(lines)}")
    return wrong


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
        return problems(folder, case, healthy, report), done.stdout
    finally:
        job.end()


def run(folder, case, healthy, keep):
    reports = Path(tempfile.mkdtemp(prefix="ddpzoo_report_"))
    job = Job(folder, case, healthy, prefix=(TOOL, "run", "--hang-timeout", "6", "--on-hang", "kill", "--always", "--report-dir", str(reports), "--"))
    try:
        limit = time.time() + (40 if healthy or case.get("healthy_only") else 90)
        while job.process.poll() is None and time.time() < limit:
            time.sleep(0.2)
        if job.process.poll() is None:
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
        return problems(folder, case, healthy, report), job.output()
    finally:
        job.end()
        shutil.rmtree(reports, ignore_errors=True)


def told_cases(folder):
    """The cases of a folder; what a script's own line leaves out is its name and the folder's kind."""
    if (folder / "expected.json").exists():
        return json.loads((folder / "expected.json").read_text())
    told = []
    for script in sorted(folder.glob("*.py")):
        for line in script.read_text().splitlines():
            if line.startswith("# EXPECT "):
                told.append({"script": script.name, "kind": folder.name.replace("_", "-"), **json.loads(line[len("# EXPECT "):])})
    return told


def cases(names, ci, mode="run"):
    """(folder, case); `"mode": "run"` in a case: only a job recorded from its start shows the cause."""
    for folder in sorted(path for path in HERE.iterdir() if path.is_dir()):
        for case in told_cases(folder):
            label = f"{folder.name}/{case['script']}"
            if case.get("mode") == "run" and mode != "run":
                continue
            if (not names or any(n in label for n in names)) and (not ci or label in CI_CASES):
                yield folder.name, case


def absent(case):
    """Modules the case needs and this Python lacks."""
    return [name for name in case.get("requires", []) if importlib.util.find_spec(name) is None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mode", choices=["attach", "run"], default="attach")
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
    observe = attach if options.mode == "attach" else run
    passed = failed = 0
    shard, shards = (int(word) for word in options.shard.split("/"))
    for _ in range(options.repeat):
        for folder, case in list(cases(options.names, options.ci, options.mode))[shard - 1::shards]:
            if lack := missing_need(case):
                print(f"skip {folder}/{case['script']}: {lack}", flush=True)
                continue
            sides = [False] if case.get("healthy_only") or options.no_twins or case.get("healthy") is False else [False, True]
            if options.twins:
                sides = [s for s in sides if s or case.get("healthy_only")]
            if absent(case):
                print(f"skip {folder}/{case['script']}: no module {', '.join(absent(case))} in this Python", flush=True)
                continue
            for healthy in sides:
                wrong, output = observe(folder, case, healthy, options.keep)
                if wrong and options.ci:  # a shared machine: a second look tells a defect from a bad moment, and both are printed
                    print(f"again {folder}/{case['script']}{' --healthy' if healthy else ''}: {wrong[0]}", flush=True)
                    wrong, output = observe(folder, case, healthy, options.keep)
                good = not wrong or case.get("optional", False)
                passed, failed = passed + good, failed + (not good)
                print(f"{'ok  ' if good else 'MISS'} {folder}/{case['script']}{' --healthy' if healthy else ''}" + "".join(f"\n       {w}" for w in wrong), flush=True)
                if wrong and options.verbose and output:
                    print("\n".join("     | " + line for line in output.splitlines()[:60]), flush=True)
    print(f"zoo ({options.mode}): {passed} passed, {failed} failed")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
