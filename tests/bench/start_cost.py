#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent adds to a process that records nothing: CPU time (user + system) and wall time of a small program, bare, with the agent
preloaded, and with a spool too. The three alternate, so that drift of the machine cancels out. Prints figures, asserts nothing.

  start_cost.py [--runs N] [--agent FILE]... [-- CMD...]      $DDPDOCTOR names the program next to which the agent is"""
import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path


def once(command, environment):
    began = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment)
    _, _, usage = os.wait4(pid, 0)
    return (usage.ru_utime + usage.ru_stime) * 1e6, (time.perf_counter() - began) * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--agent", action="append")
    parser.add_argument("command", nargs="*", default=["/bin/true"])
    options = parser.parse_args()
    default = Path(os.environ.get("DDPDOCTOR", "")).resolve().parent / "libddpdoctor_agent.so"
    with tempfile.TemporaryDirectory() as spool:
        bare = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "DDPDOCTOR_SPOOL")}
        ways = {"bare": bare, "bare again": bare}
        for agent in options.agent or [str(default)]:
            name = Path(agent).parent.name + "/" + Path(agent).name if options.agent else "agent"
            ways[name] = {**bare, "LD_PRELOAD": agent}
            ways[name + " + spool"] = {**bare, "LD_PRELOAD": agent, "DDPDOCTOR_SPOOL": spool}
        rows = {name: [] for name in ways}
        for i in range(options.runs):
            for name in (list(ways) if i % 2 else list(ways)[::-1]):
                rows[name].append(once(options.command, ways[name]))
    base = [statistics.median(column) for column in zip(*rows["bare"])]
    for name, values in rows.items():
        cpu, wall = (statistics.median(column) for column in zip(*values))
        low = min(v[0] for v in values)
        print(f"{name:45} CPU {cpu:6.0f} us ({cpu / base[0] - 1:+.0%}, least {low:.0f})   wall {wall:6.0f} us ({wall / base[1] - 1:+.0%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
