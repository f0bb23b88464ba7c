#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bench job's stacks as ddpdoctor ($DDPDOCTOR), py-spy, pystack (beside this Python) and gdb see them. Every thread that a peer shows is
compared: Python frames (function, file, line) must be equal to py-spy's and pystack's; native frames to gdb's by the
symbol of each return address. CPython's evaluation function is no frame of ours: the Python functions that it runs are.

  frames.py [--ranks N]      prints what differs and a count; ends 1 when something differs"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench  # noqa: E402
import zoo  # noqa: E402

FOLDER = Path(sys.executable).parent


def plain(name):
    """`ns::name<T>(args) [clone]` → `name`, without leading underscores and glibc's internal prefixes."""
    name = (name or "??").replace("uv.", "uv__")  # gdb takes libuv for Go
    for word, safe in (("operator()", "operator_call"), ("(anonymous namespace)", "anonymous"), ("__GI_", "")):
        name = name.replace(word, safe)
    out, depth = "", 0
    for letter in re.sub(r"\[clone[^\]]*\]|@@?\w.*", "", name):
        if letter == "(" and depth == 0:
            break
        depth += (letter == "<") - (letter == ">")
        out += letter if depth == 0 and letter != ">" else ""
    out = re.sub(r"\.(cold|isra|constprop|part).*", "", re.split(r"[ :]", out.strip())[-1])
    return out.lstrip("_").removesuffix("64")


def python_frames(frames):
    return [(f["function"].split(".")[-1], Path(f["file"]).name, f.get("line")) for f in frames if f["language"] == "python"]


def ours(report):
    return {(p["pid"], t["tid"]): t["frames"] for p in report["processes"] for t in p["threads"]}


def of_py_spy(pid):
    done = subprocess.run([FOLDER / "py-spy", "dump", "--json", "--pid", str(pid)], capture_output=True, text=True, check=False)
    for thread in json.loads(done.stdout or "[]"):
        yield thread["os_thread_id"], [(f["name"].split(".")[-1], Path(f["filename"]).name, f["line"]) for f in thread["frames"]]


def of_pystack(pid):
    done = subprocess.run([FOLDER / "pystack", "remote", str(pid)], capture_output=True, text=True, check=False)
    for block in re.split(r"(?=Traceback for thread )", done.stdout)[1:]:
        frames = re.findall(r'\(Python\) File "([^"]+)", line (\d+), in (\S+)', block)[::-1]
        yield int(re.match(r"Traceback for thread (\d+)", block)[1]), [(f.split(".")[-1], Path(file).name, int(line)) for file, line, f in frames]


GDB_SCRIPT = """
import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            called = frame.newer() is not None
            print("FRAME", thread.ptid[1], gdb.execute(f"info symbol {frame.pc() - called}", to_string=True).split(" in section")[0])
        frame = frame.older()
"""


def of_gdb(pid):
    """The frames that exist on the stack, by the symbol of their address, without inlined frames and tail calls."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(GDB_SCRIPT)
        script.flush()
        done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set demangle-style gnu-v3",
                               "-ex", "set backtrace past-main on", "-x", script.name], capture_output=True, text=True, check=False)
    threads = collections.defaultdict(list)
    for tid, name in re.findall(r"^FRAME (\d+) (.*)$", done.stdout, re.M):
        if not name.startswith("_PyEval_EvalFrameDefault"):
            threads[int(tid)].append("??" if name.startswith("No symbol") else plain(re.sub(r" \+ \d+$", "", name)))
    yield from threads.items()


def native_frames(frames):
    """Functions without a name of their own (a folded binding) may have gdb's name."""
    return [plain(f.get("function")) for f in frames if f["language"] == "native"]


def same_native(mine, gdb):
    """True if the lengths are equal, and the names if both have one."""
    return len(mine) == len(gdb) and all(a == b or not a or not b or "??" in (a, b) or a == "Work" for a, b in zip(mine, gdb))


def compare(pids, known):
    counts = collections.Counter()
    peers = [("py-spy", of_py_spy, python_frames, list.__eq__), ("pystack", of_pystack, python_frames, list.__eq__)]
    peers = [peer for peer in peers if (FOLDER / peer[0]).exists()]
    if shutil.which("gdb"):
        peers.append(("gdb", of_gdb, native_frames, same_native))
    for name, read, part, same in peers:
        for pid in pids:
            for tid, theirs in read(pid):
                mine = part(known.get((pid, tid), []))
                equal = same(mine, theirs)
                counts[name, "threads"] += 1
                counts[name, "equal"] += equal
                if not equal:
                    print(f"{name} {pid}/{tid}\n  ours   {mine}\n  theirs {theirs}")
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="ddpbench_")
    (Path(work) / "bench_job.py").write_text(bench.JOB)
    job = zoo.Job("healthy", {"script": "bench_job.py", "launch": "torchrun", "ranks": options.ranks, "settle": 4}, False, work=work)
    try:
        if not job.wait_ready(False, limit=300):
            print(job.output()[-2000:])
            return 1
        root = job.process.pid
        report = Path(work) / "report.json"
        subprocess.run([os.environ["DDPDOCTOR"], "attach", str(root), "-o", report], stdout=subprocess.DEVNULL, check=False)
        counts = compare(zoo.tree(root), ours(json.loads(report.read_text())))
        for name in sorted({name for name, _ in counts}):
            print(f"{name}: {counts[name, 'equal']} of {counts[name, 'threads']} threads equal")
        return int(any(counts[name, "equal"] != counts[name, "threads"] for name, _ in counts))
    finally:
        job.end()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
