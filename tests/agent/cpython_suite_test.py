# SPDX-License-Identifier: Apache-2.0
"""A small part of CPython's own tests, bare and under the agent (cpython_suite.py; `./dev suites` runs all of it)."""
import subprocess
import sys
from pathlib import Path

import pytest

from guest import AGENT, compiled, needs_agent

SUITE = Path(__file__).with_name("cpython_suite.py")
# The interpreter itself, not the environment of the tests: `python -m test` isolates its own children.
PYTHON = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
HAS_TESTS = subprocess.run([PYTHON, "-c", "import test.support, test.test_os"], capture_output=True, check=False).returncode == 0 if Path(PYTHON).exists() else False
pytestmark = [needs_agent, pytest.mark.skipif(not HAS_TESTS, reason="this Python has no test package (Debian: libpython3-testsuite)")]


@pytest.mark.parametrize(("module", "tests"), [("test_mmap", []), ("test_atexit", []), ("test_posix", ["TestPosixSpawn*"]), ("test_subprocess", ["*env*", "*preexec*"]),
                                               ("test_threading", ["*fork*"]), ("test_signal", ["PosixTests", "WakeupFDTests"]),
                                               ("test_os", ["SpawnTests", "ExecTests", "ForkTests"])])
def test_a_part_of_cpythons_tests_has_the_same_outcomes(tmp_path, module, tests):
    command = [sys.executable, str(SUITE), "--agent", str(AGENT), "--python", PYTHON, "--only", module, "--limit", "300", "--records"]
    done = subprocess.run(command + [word for name in tests for word in ("--match", name)], capture_output=True, text=True, timeout=1500, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " 0 differ " in done.stdout


def test_a_library_that_changes_an_answer_is_noticed(tmp_path):
    """Checks the comparison itself: msync fails under this agent, and mmap.flush with it."""
    other = compiled(tmp_path, "other.so", "#include <errno.h>\n#include <stddef.h>\nint msync(void* a, size_t n, int f) { errno = EINVAL; return -1; }",
                     "-shared", "-fPIC")
    done = subprocess.run([sys.executable, str(SUITE), "--agent", str(other), "--python", PYTHON, "--only", "test_mmap"],
                          capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 1 and "DIFFERS" in done.stdout and "flush" in done.stdout, done.stdout[-2000:] + done.stderr[-500:]
