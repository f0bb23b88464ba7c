#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a fault to the verdict, with many simulated ranks, a real nats-server on loopback and a real `ddpdoctor collect`.

  DDPDOCTOR=build/dev/ddpdoctor tests/bench/fleet_scale.py [--nodes 128] [--ranks 128] [FAULT…]

Prints for each fault: seconds from the fault to the report and the collector's CPU in this time, its CPU per second before the fault, its
peak memory."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nodes"))
from always_on import TOOL, Server, eventually  # noqa: E402

PLAYERS = Path(TOOL).resolve().parent / "fleet_nodes"
BEFORE = 8  # seconds of a healthy job


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid):
    return next(int(line.split()[1]) / 1024 for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))


def one(fault, nodes, ranks, port):
    folder = Path(tempfile.mkdtemp(prefix="ddpscale_"))
    url = f"nats://127.0.0.1:{port}"
    server = Server(folder / "nats", port=port)
    # the players' captures are a program's: nothing of the machine is looked at
    players = subprocess.Popen([PLAYERS, url, "scale", str(nodes), str(ranks), fault, str(BEFORE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    collector = subprocess.Popen([TOOL, "collect", "--nats", url, "--job", "scale", "--hang-timeout", "1", "--report-dir", str(folder / "report")],
                                 stdout=open(folder / "said", "w"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        time.sleep(BEFORE / 2)
        began, used = time.time(), processor_seconds(collector.pid)
        time.sleep(BEFORE / 4)
        load = (processor_seconds(collector.pid) - used) / (time.time() - began)
        at = float(players.stdout.readline().split()[1])
        used = processor_seconds(collector.pid)
        said = lambda: (folder / "said").read_text()  # noqa: E731
        wanted = "no word from" if fault == "dead" else "error:"
        eventually(lambda: wanted in said(), 120, said)
        spoken, spent = time.time() - at, processor_seconds(collector.pid) - used
        memory = peak_mib(collector.pid)
        if fault != "dead":
            eventually((folder / "report/job.ddpd").exists, 120, said)  # written last
        report = folder / "report/report.json"
        finding = json.loads(report.read_text())["findings"][0] if report.exists() else {}
        players.stdin.close()
        rate = players.stdout.read().strip()
        size = report.with_suffix(".html").stat().st_size / 1e6 if report.exists() else 0
        print(f"{nodes * ranks:6} ranks, {nodes} nodes, {fault:8}: said after {spoken:.2f} s and {spent:.1f} s of CPU; collector {load:.2f} cores, {memory:.0f} MiB; "
              f"page {size:.1f} MB; {finding.get('kind', '')} {finding.get('culprits', '')}; {rate}", flush=True)
    finally:
        for process in (players, collector):
            process.kill()
            process.wait()
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("faults", nargs="*", default=["stall", "mismatch", "dead"])
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--port", type=int, default=24222)
    options = parser.parse_args()
    for fault in options.faults:
        one(fault, options.nodes, options.ranks, options.port)


if __name__ == "__main__":
    main()
