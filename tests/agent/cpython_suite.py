#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests of processes, threads, signals and memory, each module run bare and under the agent by `python -m test`: the outcome
of every single test must be the same. Any interpreter that has its test package will do (pyenv's; Debian's with libpython3-testsuite).

  cpython_suite.py --agent PATH/libddpdoctor_agent.so [--python PYTHON]      every module of MODULES that PYTHON has
                   [--only test_os,test_mmap] [--match PATTERN]              these modules, tests of these names
                   [--records]                                               each interpreter records from its start
                   [--results FILE] [--before "nice -n 15"] [--limit 1500]   results so far; words before a command; seconds for a module

A test whose outcome differs runs again, twice each way: it counts when no outcome under the agent was also seen bare. A module that does
not end in time is compared by what it printed until then. Exit status 1 = a test differs, or a module was cut off."""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

MODULES = ["test_subprocess", "test_multiprocessing_fork", "test_multiprocessing_spawn", "test_multiprocessing_forkserver",
           "test_multiprocessing_main_handling", "test_threading", "test_ctypes", "test_signal", "test_os", "test_faulthandler", "test_mmap",
           "test_shared_memory", "test_posix", "test_fork1", "test_thread", "test_atexit"]
# 3.11.7 and 3.12.1 install test/_test_multiprocessing.py without the packages that import it: they are these two lines.
BY_METHOD = "from test._test_multiprocessing import install_tests_in_module_dict\ninstall_tests_in_module_dict(globals(), {method!r}{rest})\n"
KINDS = ("manager", "misc", "processes", "threads")
# Makes a segment of shared memory and removes it: two events, so that the process has a ring before its first test.
RECORDS = """
import os
try:
    import _posixshmem
    name = f"/ddpcpython_{os.getpid()}"
    os.close(_posixshmem.shm_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    _posixshmem.shm_unlink(name)
except Exception:
    pass
"""


class Interpreter:
    """A Python that has its test package, and those of its modules that can run."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        ask = "import sys, test.support, os; print('%d.%d.%d' % sys.version_info[:3]); print(os.path.dirname(test.__file__))"
        done = subprocess.run([program, "-c", ask], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"cpython_suite: {program} has no test package (Debian: libpython3-testsuite): {done.stderr.strip()[-200:]}")
        self.version, self.tests = done.stdout.split()
        self.extra = folder / "more_tests"
        self.extra.mkdir()
        (folder / "records").mkdir()
        (folder / "records" / "sitecustomize.py").write_text(RECORDS)
        names = {path.stem for path in Path(self.tests).glob("test_*")} | {path.name for path in Path(self.tests).glob("test_*")}
        self.modules = [module for module in MODULES if module in names]
        if (Path(self.tests) / "_test_multiprocessing.py").is_file():
            self.modules += self._missing(names)

    def _missing(self, names):
        made = []
        for method in ("fork", "spawn", "forkserver"):
            if f"test_multiprocessing_{method}" in names:
                continue
            for kind in KINDS:
                made.append(f"test_multiprocessing_{method}_{kind}")
                rest = ", exclude_types=True" if kind == "misc" else f", only_type={kind!r}"
                (self.extra / f"{made[-1]}.py").write_text(BY_METHOD.format(method=method, rest=rest))
        return made

    def is_extra(self, module):
        return (self.extra / f"{module}.py").is_file()


# unittest's line for a test, with the first line of its docstring in between: before 3.11 the parentheses contain only the class.
PRINTED = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n[^\n]+)? \.\.\. (ok|FAIL|ERROR|skipped|expected failure)\b", re.MULTILINE)
WORDS = {"FAIL": "failed", "ERROR": "error", "expected failure": "ok"}


def printed_outcomes(text):
    found = {}
    for method, path, word in PRINTED.findall(text):
        name = path if path.endswith("." + method) else f"{path}.{method}"
        found[name] = (WORDS.get(word, word), "")
    return found


def outcome_of(case):
    for child, outcome in (("error", "error"), ("failure", "failed"), ("skipped", "skipped")):
        found = case.find(child)
        if found is not None:
            return outcome, (found.get("message") or "") + (found.text or "")
    return "ok", ""


def run_module(arguments, interpreter, module, agent, match=()):
    """Outcomes of the module's tests by their names, and the number of rings; a module that prints no tests is one test with its own name."""
    folder = Path(tempfile.mkdtemp(prefix="ddpcpython_"))
    spool = folder / "spool"
    spool.mkdir(mode=0o700)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LD_", "DDPDOCTOR"))}
    environment.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", TMPDIR=str(folder))
    paths = [str(interpreter.folder / "records")] * arguments.records + [str(interpreter.extra)] * interpreter.is_extra(module)
    if paths:
        environment["PYTHONPATH"] = ":".join(paths)
    command = [*shlex.split(arguments.before), "env"]
    if agent:
        command += [f"LD_PRELOAD={Path(agent).resolve()}", f"DDPDOCTOR_SPOOL={spool}"]
    command += [interpreter.program, "-m", "test", "-v", "-u", "cpu,subprocess", "--junit-xml", str(folder / "results.xml")]
    command += ["--testdir", str(interpreter.extra)] if interpreter.is_extra(module) else []
    command += [word for name in match for word in ("-m", name)]
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen([*command, module], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=said,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(arguments.limit)
        except subprocess.TimeoutExpired:
            code = "a timeout"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # processes that a test left behind
        except ProcessLookupError:
            pass
        process.wait()
    outcomes = {}
    try:
        for case in xml.parse(folder / "results.xml").iter("testcase"):
            outcomes[case.get("name")] = outcome_of(case)
    except (OSError, xml.ParseError):
        pass
    if not outcomes:
        text = (folder / "said").read_bytes().decode(errors="replace")
        outcomes = printed_outcomes(text)
        outcomes[module] = ("skipped" if "skipped" in text and code == 0 else f"cut off, ended with {code}", text[-3000:])
    rings = len(list(spool.glob("*.ring")))
    shutil.rmtree(folder, ignore_errors=True)
    return outcomes, rings


def run_both(arguments, interpreter, module, match=()):
    """Runs both, bare and under the agent, at the same time, so that the machine is equally loaded for both."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bare = pool.submit(run_module, arguments, interpreter, module, None, match)
        agent = pool.submit(run_module, arguments, interpreter, module, arguments.agent, match)
        return bare.result(), agent.result()


def differs(entry):
    return not set(entry["bare"]) & set(entry["agent"])


def compare_module(arguments, interpreter, module):
    """The result of each test in both runs, as lists of outcomes; repeated if they differ."""
    (bare, _), (agent, rings) = run_both(arguments, interpreter, module, arguments.match)
    absent = ("absent", "")
    seen = {test: {"bare": [bare.get(test, absent)[0]], "agent": [agent.get(test, absent)[0]],
                   "why": agent.get(test, absent)[1][-3000:]} for test in {**bare, **agent}}
    apart = [test for test, entry in seen.items() if differs(entry)]
    names = arguments.match if module in apart else sorted({test.split(" ")[0].split(".")[-1] for test in apart})
    for _ in range(2 if apart else 0):
        (bare, _), (agent, _) = run_both(arguments, interpreter, module, names)
        for test in apart:
            seen[test]["bare"].append(bare.get(test, absent)[0])
            seen[test]["agent"].append(agent.get(test, absent)[0])
    for test in apart:
        word = "DIFFERS" if differs(seen[test]) else "by chance"
        print(f"{word} {test}: bare {seen[test]['bare']}, agent {seen[test]['agent']}: {seen[test]['why'][-1200:]}", flush=True)
    return {"tests": seen, "rings": rings}


def summary(interpreter, seen, seconds):
    entries = {f"{module}: {test}": entry for module, found in seen.items() for test, entry in found["tests"].items()}
    apart = [test for test, entry in entries.items() if differs(entry)]
    unsteady = [test for test, entry in entries.items() if len(entry["bare"]) > 1 and not differs(entry)]
    cut = [test for test, entry in entries.items() if any(said.startswith("cut off") for said in entry["bare"] + entry["agent"])]
    counts = collections.Counter(entry["bare"][-1] for entry in entries.values())
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    print(f"CPython {interpreter.version}, {len(seen)} modules, {len(entries)} tests: {said}; {len(apart)} differ under the agent {apart}, "
          f"{len(unsteady)} by chance {unsteady}; cut off {cut}; {sum(found['rings'] for found in seen.values())} rings; {seconds:.0f} s")
    return 1 if apart or cut else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose tests run")
    parser.add_argument("--agent", default="build/release/libddpdoctor_agent.so")
    parser.add_argument("--only", default="", help="modules, separated by commas")
    parser.add_argument("--match", action="append", default=[], help="names of tests, as `python -m test -m` has them")
    parser.add_argument("--records", action="store_true", help="every interpreter records from its start on")
    parser.add_argument("--results", default="", help="kept as it grows; modules in it are not run again")
    parser.add_argument("--before", default="", help="words before each command")
    parser.add_argument("--limit", type=int, default=1500, help="seconds for one module")
    arguments = parser.parse_args()
    if not Path(arguments.agent).is_file():
        raise SystemExit(f"cpython_suite: no agent at {arguments.agent}")
    folder = Path(tempfile.mkdtemp(prefix="ddpcpython_more_"))
    started = time.time()
    try:
        interpreter = Interpreter(arguments.python, folder)
        results = Path(arguments.results) if arguments.results else folder / "results.json"
        seen = json.loads(results.read_text()) if results.exists() else {}
        wanted = [name for name in arguments.only.split(",") if name]
        modules = [module for module in interpreter.modules if not wanted or any(module == name or module.startswith(name + "_") for name in wanted)]
        for module in modules:
            if module not in seen:
                seen[module] = compare_module(arguments, interpreter, module)
                results.write_text(json.dumps(seen, indent=1))
                print(f"{module}: {len(seen[module]['tests'])} tests, {seen[module]['rings']} rings, {time.time() - started:.0f} s so far", flush=True)
        return summary(interpreter, {module: seen[module] for module in modules}, time.time() - started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
