#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments in a 3-rank gloo job under `ddpdoctor run`: kills one rank, all ranks, the launcher, or ddpdoctor itself.

  kill_rounds.py [--rounds 50] [--seed N]      $DDPDOCTOR is the program; run with a Python that has torch

Checks after each round: the first finding names a killed rank; every rank's progress in the report agrees with what the rank itself wrote
down; no ring has a record that was never written; a job whose ddpdoctor was killed continues. Exits non-zero if a check fails."""
import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from guest import TOOL
from rings import rings

RANKS = 3
JOB = '''import os, struct, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, value, done = dist.get_rank(), torch.ones(64), 0
steps = os.open(f"steps.{rank}", os.O_RDWR | os.O_CREAT, 0o644)
with open(f"pid.{rank}.new", "w") as out: out.write(str(os.getpid()))
os.rename(f"pid.{rank}.new", f"pid.{rank}")
while True:
    dist.all_reduce(value); value.fill_(1); done += 1
    os.pwrite(steps, struct.pack("<q", done), 0)
    time.sleep(0.002)
'''
LAUNCH = '''echo $$ > launcher.new ; mv launcher.new launcher
for r in 0 1 2 ; do RANK=$r python3 job.py & pids="$pids $!" ; done
worst=0 ; for p in $pids ; do wait $p || worst=1 ; done ; exit $worst
'''
VICTIMS = ["rank", "all ranks", "launcher", "ddpdoctor"]
PATIENCE = 90


def until(condition, limit=PATIENCE):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except (OSError, ValueError, struct.error):
            pass
        time.sleep(0.02)
    return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Round:
    def __init__(self, folder, chance):
        self.folder, self.chance, self.problems = Path(folder), chance, []
        (self.folder / "job.py").write_text(JOB)
        (self.folder / "launch.sh").write_text(LAUNCH)
        (self.folder / "spool").mkdir(mode=0o700)

    def steps(self):
        return [struct.unpack("<q", (self.folder / f"steps.{rank}").read_bytes())[0] for rank in range(RANKS)]

    def start(self):
        variables = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.chance.randrange(20000, 30000)), WORLD_SIZE=str(RANKS), OMP_NUM_THREADS="1",
                         GLOO_SOCKET_IFNAME="lo", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        command = [str(TOOL), "run", "--spool", "spool", "--report-dir", "report", "--always", "--hang-timeout", "20", "--", "bash", "launch.sh"]
        with open(self.folder / "log", "wb") as log:
            self.run = subprocess.Popen(command, cwd=self.folder, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        if not until(lambda: min(self.steps()) > 5):
            self.problems.append("the job did not start: " + (self.folder / "log").read_text(errors="replace")[-500:])
        self.pids = [int((self.folder / f"pid.{rank}").read_text()) for rank in range(RANKS)] if not self.problems else []
        self.launcher = int((self.folder / "launcher").read_text())

    def end(self):
        for pid in [*self.pids, self.launcher, self.run.pid]:
            if alive(pid):
                kill(pid)
        self.run.wait()

    def strike(self, victim):
        time.sleep(self.chance.random() * 1.5)
        self.rank = self.chance.randrange(RANKS)
        struck = {"rank": [self.pids[self.rank]], "all ranks": self.pids, "launcher": [self.launcher], "ddpdoctor": [self.run.pid]}[victim]
        for pid in struck:
            kill(pid)
        if victim == "ddpdoctor":
            before = self.steps()
            if not until(lambda: all(b > a + 20 for a, b in zip(before, self.steps())), 30):
                self.problems.append("the job did not go on without ddpdoctor")
            for pid in [*self.pids, self.launcher]:
                kill(pid)
        try:
            self.status = self.run.wait(60)
        except subprocess.TimeoutExpired:
            self.problems.append(f"run did not end after the {victim} died")
        for pid in self.pids:  # orphans of a killed launcher
            kill(pid)
        until(lambda: not any(map(alive, self.pids)), 10)

    def read(self, source):
        out = self.folder / "again.json"
        done = subprocess.run([str(TOOL), "report", str(source), "-o", str(out)], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode not in (0, 1):
            self.problems.append(f"report {source}: {done.returncode} {done.stderr.strip()[-300:]}")
            return {}
        return json.loads(out.read_text())

    def check(self, victim):
        if victim == "rank":
            first = (json.loads((self.folder / "report" / "report.json").read_text())["findings"] or [{}])[0]
            if (first.get("kind"), first.get("culprits")) != ("dead-rank", [self.rank]):
                self.problems.append(f"rank {self.rank} was killed, the report says {first.get('kind')} {first.get('culprits')}")
            if self.status == 0:
                self.problems.append("run ended with 0")
        report, true = self.read(self.folder / "spool"), self.steps()
        for finding in report.get("findings", []):
            if victim != "rank" and finding["confidence"] == "certain" and finding["kind"] != "dead-rank":
                self.problems.append(f"{victim} died, the report is certain of {finding['kind']} {finding['culprits']}")
        far = {row["rank"]: row["enqueued"] for group in report.get("groups", []) for row in group["progress"]}
        for rank in range(RANKS):
            if not -1 <= far.get(rank, -9) - true[rank] <= 3:
                self.problems.append(f"rank {rank} finished {true[rank]} collectives, the report says {far.get(rank)}")
        if (report.get("coverage") or {}).get("events_lost"):
            self.problems.append("events were lost")
        self.check_records()

    def check_records(self):
        found = rings(self.folder / "spool")
        for pid in self.pids:
            calls = [event for event in found[pid].of("collective") if event.phase == 0]
            numbers = [event.sequence for event in calls]
            if any((event.operation, event.count) != (1, 64) for event in calls) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
                self.problems.append(f"the ring of {pid} holds a record that nobody wrote")
            if found[pid].torn > 4:
                self.problems.append(f"the ring of {pid} has {found[pid].torn} torn slots")


def one_round(victim, chance):
    """The failed checks, as sentences."""
    with tempfile.TemporaryDirectory(prefix="ddpkill_") as folder:
        this = Round(folder, chance)
        this.start()
        try:
            if not this.problems:
                this.strike(victim)
                this.check(victim)
        finally:
            this.end()
        return this.problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    chance, bad = random.Random(options.seed), 0
    print(f"seed {options.seed}", flush=True)
    for number in range(options.rounds):
        victim = VICTIMS[number % len(VICTIMS)]
        problems = one_round(victim, chance)
        bad += bool(problems)
        print(f"{number + 1:3} {victim:10} {'holds' if not problems else '; '.join(problems)}", flush=True)
    print(f"{options.rounds - bad} of {options.rounds} rounds hold")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
