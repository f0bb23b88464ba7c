#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The zoo of jobs on many nodes: real torchrun with --nnodes 3 over gloo in three nodes of cluster.py, asked by one
`ddpdoctor attach --hosts node1,node2,node3` from outside. Each script says in `# EXPECT {…}` what must be said of it; a healthy twin must be
met with silence.

  multinode.py [NAME…] [--ci] [--keep DIR] [-v]

Fields beside the zoo's kind, culprits, also, confidence, functions: `hosts` (of the culprits), `absent` (a node on which nothing is started),
`dead` (a node whose power fails once the job runs), `silent` (a node that must be named as not answering and whose ranks nobody may accuse),
`start` (`ranks`: each rank by hand with WORLD_SIZE of `sizes`, a number for each node)."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "zoo")]
from cluster import Cluster, missing  # noqa: E402
from jobs import ticks  # noqa: E402

TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
CI_CASES = {"mismatch", "dead_node"}
SURE = ("likely", "certain")
PORT = 29511  # in namespaces of their own, so the port is free
RANKS_EACH = 2


def cases(names, ci):
    for script in sorted((HERE / "jobs").glob("*.py")):
        for line in script.read_text().splitlines():
            if line.startswith("# EXPECT "):
                case = {"name": script.stem, "script": script.name, **json.loads(line[len("# EXPECT "):])}
                if (not names or any(name in case["name"] for name in names)) and (not ci or case["name"] in CI_CASES):
                    yield case


class Job:
    """One case on a cluster; `log` has what all nodes print."""

    def __init__(self, case, healthy, folder):
        self.case, self.healthy, self.log = case, healthy, folder / "job.log"
        self.log.touch()
        shutil.copy(HERE / "jobs" / case["script"], folder / "train.py")
        self.cluster = Cluster(folder)
        try:
            for index, node in enumerate(self.cluster.nodes):
                if healthy or node.name != case.get("absent"):
                    node.start(self.command(index), self.environment(node), self.log)
        except BaseException:
            self.cluster.end()
            raise

    def environment(self, node):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG")}
        return {**kept, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0", "TP_SOCKET_IFNAME": "eth0", "PYTHONUNBUFFERED": "1",
                "NODE_FOLDER": str(self.cluster.folder), "NODE": node.name}

    def command(self, index):
        script = "train.py --healthy" if self.healthy else "train.py"
        master = self.cluster.nodes[0].address
        if self.case.get("start") == "ranks":
            size = self.case["healthy_sizes" if self.healthy else "sizes"].split()[index]
            ranks = [f"RANK={index * RANKS_EACH + i} LOCAL_RANK={i} LOCAL_WORLD_SIZE={RANKS_EACH} {sys.executable} {script} &" for i in range(RANKS_EACH)]
            return f"export WORLD_SIZE={size} MASTER_ADDR={master} MASTER_PORT={PORT}\n" + "\n".join(ranks) + "\nwait"
        return (f"exec {sys.executable} -m torch.distributed.run --nnodes 3 --node-rank {index} --nproc-per-node {RANKS_EACH} "
                f"--master-addr {master} --master-port {PORT} {script}")

    def wait_ready(self):
        wanted = 6 if self.healthy else self.case.get("ready", 6)
        until = time.time() + 120
        while self.log.read_text(errors="replace").count("READY") < wanted:
            if time.time() > until:
                return False
            time.sleep(0.2)
        for node in self.cluster.nodes:
            if node.name == self.case.get("dead") and not self.healthy:
                node.unplug()
                node.end()
        self.settle()
        return True

    def settle(self):
        """Two seconds in which no rank computes; a job that always computes gets six."""
        until, calm, last = time.time() + (6 if wanted_at_once(self.case, self.healthy) else 60), 0, 0
        time.sleep(1.5)
        while calm < 4 and time.time() < until:
            time.sleep(0.5)
            now = sum(ticks(job.pid) for node in self.cluster.nodes for job in node.jobs if job.poll() is None)
            calm, last = calm + 1 if now - last < 3 else 0, now

    def look(self, *words):
        """(exit status, report, what was printed, seconds)"""
        target = self.cluster.folder / "report.json"
        began = time.time()
        done = subprocess.run([TOOL, "attach", "--hosts", self.cluster.names, "--launcher", self.cluster.launcher, "-o", str(target), *words],
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        report = json.loads(target.read_text()) if target.exists() else None
        return done.returncode, report, done.stdout + done.stderr, time.time() - began


def wanted_at_once(case, healthy):
    return healthy or case.get("ready", 6) > 0


def about_silent(case, report):
    """A node that does not answer is named, and no rank is accused instead."""
    wrong = []
    if not any(sentence.startswith(case["silent"] + ": ") for sentence in report["coverage"]["unobserved"]):
        wrong.append(f"{case['silent']} is not named as unobserved: {report['coverage']['unobserved']}")
    accused = [f"{f['kind']} ({f['confidence']}): {f['summary']}" for f in report["findings"] if f["confidence"] in SURE and f["culprits"]]
    return wrong + [f"somebody is accused: {one}" for one in accused]


def problems(case, healthy, status, report, printed):
    if report is None:
        return [f"no report (exit {status}): {printed[-300:]}"]
    findings = report["findings"]
    if healthy:
        return [f"false alarm: {f['kind']} ({f['confidence']}): {f['summary']}" for f in findings if f["confidence"] in SURE]
    if "silent" in case:
        return about_silent(case, report)
    if not findings:
        return [f"no finding (verdict {report['verdict']})"]
    first, wrong = findings[0], []
    if first["kind"] not in [case["kind"], *case.get("also", [])]:
        wrong.append(f"kind {first['kind']} instead of {case['kind']}: {first['summary']}")
    if first["culprits"] not in [case["culprits"], *case.get("culprits_also", [])]:
        wrong.append(f"culprits {first['culprits']} instead of {case['culprits']}")
    if first["confidence"] not in ([case["confidence"]] if "confidence" in case else SURE):
        wrong.append(f"{first['confidence']}: {first['summary']}")
    if "hosts" in case and first["details"].get("hosts") != case["hosts"]:
        wrong.append(f"hosts {first['details'].get('hosts')} instead of {case['hosts']}")
    if "hosts" in case and not all(host in first["summary"] for host in case["hosts"]):
        wrong.append(f"the summary names no host: {first['summary']}")
    return wrong + (about_place(case, first) if case.get("location", True) else [])


def about_place(case, first):
    text = (HERE / "jobs" / case["script"]).read_text().splitlines()
    lines = {number for number, line in enumerate(text, 1) if "# CULPRIT" in line}
    place = (first["locations"] or [{}])[0]
    right = Path(place.get("file") or "").name == "train.py" and (place.get("line") in lines or place.get("function") in case.get("functions", []))
    return [] if right else [f"location {place.get('file')}:{place.get('line')} instead of {sorted(lines)}"]


def one_side(case, healthy, keep=None, reports=None):
    """The errors, as sentences, and what was printed; the report itself goes into `reports`."""
    folder = Path(tempfile.mkdtemp(prefix="ddpnodes_"))
    job = None
    try:
        job = Job(case, healthy, folder)
        if not job.wait_ready():
            return [f"the job did not come up: {job.log.read_text(errors='replace')[-500:]}"], ""
        status, report, printed, seconds = job.look()
        if reports is not None:
            reports.append(report)
        if keep:
            stem = Path(keep) / f"{case['name']}{'-healthy' if healthy else ''}"
            stem.with_suffix(".json").write_text(json.dumps(report, indent=1))
            stem.with_suffix(".txt").write_text(printed + f"\n[{seconds:.2f} s]\n")
            stem.with_suffix(".log").write_text(job.log.read_text(errors="replace"))
        return problems(case, healthy, status, report, printed), printed + f"\n[{seconds:.2f} s]"
    finally:
        if job:
            job.cluster.end()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ci", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    if lack := missing():
        print(f"skip: {lack}")
        return 0
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    right = wrong_sides = 0
    for case in cases(options.names, options.ci):
        for healthy in [False] if case.get("healthy") is False else [False, True]:
            label = case["name"] + (" --healthy" if healthy else "")
            wrong, printed = one_side(case, healthy, options.keep)
            print(f"{'MISS' if wrong else 'ok  '} {label}" + "".join(f"\n       {w}" for w in wrong), flush=True)
            if printed and (options.verbose or wrong):
                print("\n".join("     | " + line for line in printed.splitlines()[:40]), flush=True)
            right, wrong_sides = right + (not wrong), wrong_sides + bool(wrong)
    print(f"zoo (nodes): {right} passed, {wrong_sides} failed")
    return 1 if wrong_sides else 0


if __name__ == "__main__":
    sys.exit(main())
