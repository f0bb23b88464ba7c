# SPDX-License-Identifier: Apache-2.0
"""The agent as a guest: what it needs, what it exports, and that programs under it behave as without it."""
import re
import shutil
import subprocess
import sys

import pytest

from guest import AGENT, SOURCE, behaves_alike, behaviour, needs_agent

pytestmark = needs_agent


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments, str(AGENT)], capture_output=True, text=True, check=True).stdout


def test_needs_libc_alone():
    """libdl is a part of libc: an empty file since glibc 2.34."""
    assert sorted(re.findall(r"NEEDED.*\[(.*)\]", readelf("-d"))) == ["libc.so.6", "libdl.so.2"]
    assert not re.search(r"R(UN)?PATH", readelf("-d"))


def test_loads_where_glibc_is_2_17():
    needs = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V"))
    assert needs and max((int(major), int(minor)) for major, minor in needs) <= (2, 17)


def test_exports_only_what_it_intercepts():
    """Exports names of libc only, where every name exists anyway; none of other libraries (see lookups_test.py)."""
    listed = set(re.findall(r"(\w+);", (SOURCE / "agent" / "exports.map").read_text().split("local:")[0]))
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(AGENT)], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in symbols.splitlines()} == listed


def test_numbers_its_hooks_in_order():
    numbers = re.findall(r"^(?:CALL|AROUND|ENTRY)\((\d+),", (SOURCE / "agent" / "c10d" / "c10d_hooks.inc").read_text(), re.M)
    assert [int(n) for n in numbers] == list(range(len(numbers)))
    assert f"kHooks = {len(numbers)};" in (SOURCE / "agent" / "hooks.h").read_text()


def test_has_one_constructor_of_its_own():
    size = re.search(r"\.init_array\s+INIT_ARRAY\s+\w+ \w+ (\w+)", readelf("-S"))
    assert int(size.group(1), 16) == 16  # the compiler's frame_dummy and start


def test_is_bound_at_load_and_never_unloaded():
    flags = readelf("-d")
    assert "NOW" in flags and "NODELETE" in flags
    assert "TEXTREL" not in flags
    assert re.search(r"GNU_STACK.*RW ", readelf("-l"))


COMMANDS = {
    "true": ["/bin/true"],
    "false": ["/bin/false"],
    "shell": ["bash", "-c", "echo a; echo b >&2; (exit 3) | cat; for i in 1 2 3; do (echo $i); done; exit 7"],
    "killed": ["bash", "-c", "kill -9 $$"],
    "pipe": ["bash", "-c", "yes | head -1000 | sha1sum"],
    "git": ["git", "--version"],
    "gcc": ["gcc", "--version"],
    "cat": ["cat"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_leaves_programs_as_they_are(name, tmp_path):
    if shutil.which(COMMANDS[name][0]) is None:
        pytest.skip(f"no {COMMANDS[name][0]} here")
    behaves_alike(COMMANDS[name], tmp_path, data=b"text\n" * 1000)


SCRIPTS = {
    "fork": "import os\nfor i in range(20):\n p = os.fork()\n if p == 0: os._exit(i)\n print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))",
    "subprocess": "import subprocess, sys\nprint(subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit 4']).returncode)\n"
                  "try: subprocess.run(['/no/such/program'])\nexcept FileNotFoundError as e: print(e.errno)",
    "failed exec": "import os, sys\ntry: os.execv('/no/such', ['x'])\nexcept OSError as e: print(e.errno); sys.exit(5)",
    "threads": "import threading\nn = []\nt = [threading.Thread(target=n.append, args=(i,)) for i in range(50)]\n"
               "[x.start() for x in t]; [x.join() for x in t]; print(sorted(n))",
    "shared memory": "from multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=4096)\ns.buf[0] = 7\nprint(s.buf[0])\ns.close(); s.unlink()",
    "no such segment": "from multiprocessing.shared_memory import SharedMemory\ntry: SharedMemory(name='ddpdoctor_absent')\nexcept OSError as e: print(e.errno)",
    "fork pool": "import multiprocessing as m\nif __name__ == '__main__':\n with m.get_context('fork').Pool(3) as p: print(p.map(abs, range(-5, 5)))",
    "exception": "import sys\nprint('before', file=sys.stderr)\nraise ValueError('as it was')",
    "abort": "import os\nos.abort()",
    "signal": "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('got'))\nos.kill(os.getpid(), signal.SIGUSR1)\nos.kill(os.getpid(), 15)",
    "errno": "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\nctypes.set_errno(33)\nprint(c.shm_unlink(b'/ddpdoctor_absent'), ctypes.get_errno())\n"
             "print(c.ftruncate(-1, 5), ctypes.get_errno(), c.waitpid(-1, None, 0), ctypes.get_errno())",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_leaves_python_as_it_is(name, tmp_path):
    behaves_alike([sys.executable, "-c", SCRIPTS[name]], tmp_path)


def test_leaves_spawned_children_as_they_are(tmp_path):
    script = tmp_path / "spawn.py"
    script.write_text("import multiprocessing as m\nif __name__ == '__main__':\n with m.get_context('spawn').Pool(2) as p: print(p.map(abs, range(-3, 3)))\n")
    behaves_alike([sys.executable, str(script)], tmp_path)


def test_survives_two_thousand_forks(tmp_path):
    script = ("import os\nfrom multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=64)\n"  # now it records
              "for i in range(2000):\n p = os.fork()\n if p == 0: os._exit(i & 63)\n assert os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) == i & 63\n"
              "s.close(); s.unlink(); print('done')")
    assert behaves_alike([sys.executable, "-c", script], tmp_path)[1] == b"done\n"
    assert len(list(tmp_path.glob("*.ring"))) == 1  # children that record nothing leave nothing


def test_lets_a_thread_fork_while_others_write(tmp_path):
    script = ("import os, threading\nfrom multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=64)\nstop = []\n"
              "def write():\n while not stop: os.write(2, b'x')\n"
              "t = [threading.Thread(target=write) for _ in range(3)]\n[x.start() for x in t]\n"
              "for i in range(300):\n p = os.fork()\n if p == 0:\n  os.write(2, b'c'); os._exit(0)\n assert os.waitpid(p, 0)[1] == 0\n"
              "stop.append(1); [x.join() for x in t]; s.close(); s.unlink(); print('done')")
    code, out, err = behaviour([sys.executable, "-c", script], spool=tmp_path)
    assert (code, out) == (0, b"done\n")
    assert err.count(b"c") == 300 and set(err) <= set(b"xc")


def test_works_without_an_environment(tmp_path):
    behaves_alike(["env", "-i", "/bin/echo", "bare"], tmp_path)


def test_leaves_static_programs_alone(tmp_path):
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text('#include <stdio.h>\nint main(void) { puts("static"); return 6; }\n')
    if shutil.which("gcc") is None or subprocess.run(["gcc", "-static", "-o", program, source], capture_output=True).returncode != 0:
        pytest.skip("no static libc here")
    assert behaves_alike([str(program)], tmp_path)[0] == 6


@pytest.mark.parametrize("spool", ["/nonexistent/folder", "relative", "", "/dev/null"])
def test_records_nothing_where_it_cannot(spool, tmp_path):
    script = SCRIPTS["shared memory"]
    assert behaviour([sys.executable, "-c", script], spool=spool) == behaviour([sys.executable, "-c", script])


def test_makes_no_ring_for_a_program_that_has_nothing_to_tell(tmp_path):
    behaviour(["bash", "-c", "for i in 1 2 3; do /bin/true; done; ls | wc -l"], spool=tmp_path)
    assert not list(tmp_path.iterdir())
