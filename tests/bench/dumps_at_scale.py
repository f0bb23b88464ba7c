#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flight-recorder dumps of a very large job, made cheaply, and how long `ddpdoctor report` ($DDPDOCTOR) takes over them. Prints figures, asserts only
that the rank that was left behind is named.

  dumps_at_scale.py [--ranks N] [--entries N] [--layout world|mesh] [--runs N] [--in DIR]

Every rank runs one program in lockstep; one rank stops before an all_reduce of the world (layout mesh: tp 8 x dp x pp 4; the last calls are tensor-parallel
ones). One dump is pickled; in the others only names and members of groups are put in its place, at equal length, so that a file costs a copy. In layout world
all dumps but one say the same and are links to one file: the disk is not measured then, the reader is."""
import argparse
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TP, PP = 8, 4
START = 1_790_000_000_000_000_000


def frames(line):
    return [{"name": "all_reduce", "filename": "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "line": 3118},
            {"name": "wrapper", "filename": "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", "line": 83},
            {"name": "reduce", "filename": "/srv/train/parallel.py", "line": line}, {"name": "train_step", "filename": "/srv/train/loop.py", "line": 88},
            {"name": "fit", "filename": "/srv/train/loop.py", "line": 140}, {"name": "<module>", "filename": "/srv/train/main.py", "line": 52}]


def entry(index, sequence, group, size, stack, ended):
    now = START + index * 2_000_000
    made = {"frames": stack, "record_id": index, "pg_id": 0, "process_group": group, "thread_name": "pt_main_thread", "thread_id": "140432489008000",
            "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": sequence, "profiling_name": "nccl:all_reduce", "time_created_ns": now,
            "input_sizes": [[size]], "input_dtypes": ["Float"], "output_sizes": [[size]], "output_dtypes": ["Float"],
            "state": "completed" if ended else "started", "time_discovered_started_ns": now + 90_000,
            "time_discovered_completed_ns": now + 1_100_000 if ended else None, "retired": ended, "timeout_ms": 600000, "is_p2p": False}
    return {**made, "duration_ms": 1.0078125} if ended else made


def dump(entries, groups, program, stopped):
    """The pickle of a rank that made `entries` of the program's calls; without the newest one if it is the rank that stopped."""
    stacks = {line: frames(line) for _, _, line in program}
    counts, out = {}, []
    for index in range(entries):
        name, size, line = program[index % len(program)] if index + 1 < entries else program[0]
        counts[name] = counts.get(name, 0) + 1
        out.append(entry(index, counts[name], (name, groups[name][0]), size, stacks[line], index + 1 < entries))
    config = {name: {"name": name, "desc": description, "ranks": members} for name, (description, members) in groups.items()}
    return pickle.dumps({"version": "2.10", "comm_lib_version": "2.28.9", "pg_config": config, "pg_status": {}, "nccl_comm_state": {},
                         "entries": out[:-1] if stopped else out}, protocol=2)


def world(folder, ranks, entries, guilty):
    program = [("0", 6553600, 40), ("0", 6553600, 47), ("0", 1048576, 54), ("0", 1, 61)]
    groups = {"0": ("default_pg", str(list(range(ranks))))}
    waiting = folder / "rank_0"
    waiting.write_bytes(dump(entries, groups, program, False))
    for rank in range(1, ranks):
        if rank != guilty:
            os.link(waiting, folder / f"rank_{rank}")
    (folder / f"rank_{guilty}").write_bytes(dump(entries, groups, program, True))


def padded(members, width):
    return str(members).ljust(width)


def mesh(folder, ranks, entries, guilty):
    """The world is called last; every rank is in a tensor-, a data- and a pipeline-parallel group with names of 10 letters."""
    data = ranks // TP // PP
    program = [("0", 1, 61)] + [("TPPPPPPPPP", 10485760, 40)] * 6 + [("DPPPPPPPPP", 26214400, 47)] * 2 + [("PPPPPPPPPP", 4096, 54)]
    widths = {name: 8 * count for name, count in (("TPPPPPPPPP", TP), ("DPPPPPPPPP", data), ("PPPPPPPPPP", PP))}
    groups = {"0": ("default_pg", str(list(range(ranks)))), **{name: (f"{name[:2]}_GROUP", name[0] * width) for name, width in widths.items()}}
    groups["PPPPPPPPPP"] = ("PP_GROUP", "Q" * widths["PPPPPPPPPP"])
    templates = [dump(entries, groups, program, stopped) for stopped in (False, True)]
    for rank in range(ranks):
        t, d, p = rank % TP, rank // TP % data, rank // TP // data
        members = {"TPPPPPPPPP": (d + data * p, [i + TP * (d + data * p) for i in range(TP)]), "DPPPPPPPPP": (t + TP * p, [t + TP * (i + data * p) for i in range(data)]),
                   "PPPPPPPPPP": (t + TP * d, [t + TP * (d + data * i) for i in range(PP)])}
        text = templates[rank == guilty]
        for name, (number, ranks_in) in members.items():
            text = text.replace(groups[name][1].encode(), padded(ranks_in, widths[name]).encode(), 1)
            text = text.replace(name.encode(), f"{name[:2]}{number:08}".encode())
        (folder / f"rank_{rank}").write_bytes(text)


def report(folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    subprocess.run([os.environ["DDPDOCTOR"], "report", str(folder), "-o", str(folder.parent / "report.json")], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = json.loads((folder.parent / "report.json").read_text())["findings"][0]
    return time.monotonic() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss / 1024, first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--entries", type=int, default=500)
    parser.add_argument("--layout", choices=["world", "mesh"], default="world")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--in", dest="work", help="where the dumps are made (a temporary folder)")
    options = parser.parse_args()
    guilty = options.ranks * 5 // 7
    work = Path(tempfile.mkdtemp(prefix="ddpdumps_", dir=options.work))
    try:
        folder = work / "dumps"
        folder.mkdir()
        (world if options.layout == "world" else mesh)(folder, options.ranks, options.entries, guilty)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{options.ranks} ranks x {options.entries} entries, {options.layout}: {size / 2**30:.2f} GiB, load {os.getloadavg()[0]:.1f}", flush=True)
        for _ in range(options.runs):
            wall, cpu, memory, first = report(folder)
            print(f"wall {wall:.2f} s   cpu {cpu:.2f} s   {memory:.0f} MiB   {first['kind']} {first['culprits']}", flush=True)
            if first["culprits"] != [guilty]:
                print(f"rank {guilty} is to be named")
                return 1
        return 0
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
