# SPDX-License-Identifier: Apache-2.0
"""Compares `ddpdoctor pyspy dump` with py-spy itself, on one process that does not move. Without py-spy, with its known output."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = os.environ.get("DDPDOCTOR", "")
PY_SPY = os.environ.get("PY_SPY") or shutil.which("py-spy")
pytestmark = pytest.mark.skipif(not Path(TOOL).is_file(), reason="no $DDPDOCTOR")

SCRIPT = """
import json.decoder, os, subprocess, sys, threading, time

def worker(seconds):
    time.sleep(seconds)

def inner():
    print("READY", flush=True)
    time.sleep(1000)

class Trainer:
    def fit(self, deep):
        inner() if deep == 0 else self.fit(deep - 1)

if len(sys.argv) < 2:
    child = subprocess.Popen([sys.executable, __file__, "child"])
    threading.Thread(target=worker, args=(1000,), name="loader", daemon=True).start()
Trainer().fit(2)
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    script = tmp_path_factory.mktemp("pyspy") / "train.py"
    script.write_text(SCRIPT)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert [parent.stdout.readline(), parent.stdout.readline()] == ["READY\n"] * 2  # the child's, too
    yield parent.pid
    for pid in [*map(int, Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()), parent.pid]:
        os.kill(pid, 9)
    parent.wait()


def run(*words):
    return subprocess.run([TOOL, "pyspy", "dump", *map(str, words)], capture_output=True, text=True, timeout=60)


def theirs(*words):
    if PY_SPY is None:
        pytest.skip("no py-spy here")
    done = subprocess.run([PY_SPY, "dump", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_prints_the_text_of_py_spy(process):
    said = run("--pid", process).stdout
    lines = said.splitlines()
    assert re.fullmatch(rf"Process {process}: .*train\.py", lines[0])
    assert re.fullmatch(rf"Python v{sys.version_info.major}\.{sys.version_info.minor}\.{sys.version_info.micro}\S* \(/.*\)", lines[1])
    assert lines[2:5] == ["", f'Thread {process} (idle): "MainThread"', "    inner (train.py:9)"]
    assert re.fullmatch(r'Thread \d+ \(idle\): "loader"', lines[lines.index("    <module> (train.py:18)") + 1])
    assert any(re.fullmatch(r"    .*run \(threading\.py:\d+\)", line) for line in lines)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="older interpreters keep no qualified names, and the two tools complete them differently")
@pytest.mark.parametrize("words", [[], ["--full-filenames"], ["--subprocesses"], ["--nonblocking"]])
def test_is_byte_for_byte_what_py_spy_prints(process, words):
    assert run("-p", process, *words).stdout == theirs("-p", process, *words)


def test_json_has_the_keys_and_values_of_py_spy(process):
    ours, other = (sorted(json.loads(text), key=lambda thread: thread["os_thread_id"]) for text in (run("--json", "--pid", process).stdout, theirs("--json", "--pid", process)))
    assert [list(thread) for thread in ours] == [list(thread) for thread in other]
    for one, two in zip(ours, other):
        assert [list(frame) for frame in one["frames"]] == [list(frame) for frame in two["frames"]]
        for key in ("pid", "thread_id", "thread_name", "os_thread_id", "active", "owns_gil", "process_info"):
            assert one[key] == two[key], key
        for ours_frame, other_frame in zip(one["frames"], two["frames"]):
            for key in ("name", "filename", "short_filename", "line", "module", "locals"):
                if sys.version_info >= (3, 11) or key != "name":
                    assert ours_frame[key] == other_frame[key], key


def test_native_frames_lie_between_the_same_python_frames(process):
    def python(text):
        return [line for line in text.splitlines() if ".py:" in line]

    ours, other = run("--native", "--pid", process).stdout, theirs("--native", "--pid", process)
    assert python(ours) == python(other)
    assert "clock_nanosleep (libc.so.6)" in ours or "select (libc.so.6)" in ours


def test_a_link_of_its_name_is_enough(process, tmp_path):
    (tmp_path / "py-spy").symlink_to(TOOL)
    said = subprocess.run(["py-spy", "dump", "--pid", str(process)], env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, run("--pid", process).stdout)


@pytest.mark.parametrize("words", ["--native --pid %s", " --pid %s"])
def test_a_process_dumps_itself_through_a_shell(tmp_path, words):
    """Like the watchdog of a server: a thread starts the command for its own process, the second command if the first has failed."""
    (tmp_path / "py-spy").symlink_to(TOOL)
    script = ("import os, subprocess, threading, time\n"
              "def dump():\n"
              "    print(subprocess.run('py-spy dump " + words + "' % os.getpid(), shell=True, capture_output=True, text=True, check=True).stdout)\n"
              "def serve():\n    time.sleep(1000)\n"
              "threading.Thread(target=serve, name='scheduler', daemon=True).start()\n"
              "dump()\n")
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "    dump (<string>:3)" in done.stdout and "    serve (<string>:5)" in done.stdout and '"scheduler"' in done.stdout, done.stdout


def test_says_why_not(process):
    nobody = run("--pid", 2 ** 22 + 1)
    assert nobody.returncode == 1 and not nobody.stdout and "no process" in nobody.stderr
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        other = run("--pid", sleeper.pid)
        sleeper.kill()
    assert other.returncode == 1 and "Python" in other.stderr
    assert [run(*words).returncode for words in ([], ["--pid", "abc"], ["--pid", process, "--core", "x"], ["--nonsense"])] == [2, 2, 2, 2]
    assert run("--pid", hex(process)).returncode == 0
