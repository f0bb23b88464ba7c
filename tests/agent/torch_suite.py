#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own distributed tests that ship in the wheel (gloo on the CPU, and RPC), each run bare and under the agent: the outcomes
must be the same. Needs expecttest and hypothesis beside torch.

  torch_suite.py --list                                        what can run here: neither skipped at once nor in want of a GPU
  torch_suite.py --compare --agent PATH/libddpdoctor_agent.so  all of them, in shards; what differs is tried again, twice each way
                 [--only TEXT] [--start fork|spawn] [--shard 12] [--results FILE] [--before "nice flock FILE"]
  torch_suite.py TestGloo.test_all_reduce_sum …                these, in processes of this one; a line of JSON for each"""
import argparse
import collections
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

if "BACKEND" not in os.environ:  # children are spawned and import this file again
    TOP = Path(tempfile.mkdtemp(prefix="ddptorch_"))
    for folder in ("barrier", "test_dir", "init_dir"):
        (TOP / folder).mkdir()
    os.environ.update(BACKEND="gloo", INIT_METHOD=f"file://{TOP}/shared_init_file", WORLD_SIZE="3", TEMP_DIR=str(TOP),
                      DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="90", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")

import torch  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402
from torch.testing._internal.distributed.rpc.faulty_rpc_agent_test_fixture import FaultyRpcAgentTestFixture  # noqa: E402
from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import TensorPipeRpcAgentTestFixture  # noqa: E402
from torch.testing._internal.distributed.rpc_utils import FAULTY_AGENT_TESTS, GENERIC_TESTS, TENSORPIPE_TESTS, generate_tests  # noqa: E402

GPU_DECORATORS = ("skip_if_lt_x_gpu", "skip_if_no_gpu", "require_n_gpus_for_nccl_backend")


class Started:
    """How the ranks of a test are started: as in torch (spawn), or by fork, which saves each of them the import of torch."""

    def _spawn_processes(self):
        self._start_processes(torch.multiprocessing.get_context(os.environ.get("SUITE_START", "spawn")).Process)


class TestGloo(Started, TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()


SUITES = {"TestGloo": TestGloo}
for made in (generate_tests("TensorPipe", TensorPipeRpcAgentTestFixture, GENERIC_TESTS + TENSORPIPE_TESTS, __name__),
             generate_tests("Faulty", FaultyRpcAgentTestFixture, FAULTY_AGENT_TESTS, __name__)):
    for name, suite in made.items():
        SUITES[name] = type(name, (Started, suite), {"__module__": __name__})
globals().update(SUITES)  # a spawned child finds its class by name


def needs_gpu(function):
    """True if a decorator of torch will skip the test because there is no GPU."""
    while function is not None:
        if function.__code__.co_qualname.startswith(GPU_DECORATORS) and not torch.cuda.is_available():
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def choose(text):
    tests = []
    for name, suite in SUITES.items():
        for method in unittest.TestLoader().getTestCaseNames(suite):
            function = getattr(suite, method)
            skipped = getattr(function, "__unittest_skip__", False) or getattr(suite, "__unittest_skip__", False)
            if not skipped and not needs_gpu(function) and text in f"{name}.{method}":
                tests.append(f"{name}.{method}")
    return tests


class Outcomes(unittest.TestResult):
    """Prints each outcome as soon as it is known."""

    def startTest(self, test):
        super().startTest(test)
        self.outcome, self.why = "ok", ""

    def addSkip(self, test, reason):
        self.outcome, self.why = "skipped", reason

    def addFailure(self, test, err):
        self.outcome, self.why = "failed", str(err[1])

    def addError(self, test, err):
        self.addFailure(test, err)

    def addExpectedFailure(self, test, err):
        self.outcome = "expected failure"

    def addUnexpectedSuccess(self, test):
        self.outcome = "unexpected success"

    def stopTest(self, test):
        super().stopTest(test)
        name = ".".join(test.id().split(".")[-2:])
        print("OUTCOME " + json.dumps({"test": name, "outcome": self.outcome, "why": self.why[-1500:]}), flush=True)


def run_here(tests):
    suite = unittest.TestSuite(SUITES[test.split(".")[0]](test.split(".")[1]) for test in tests)
    suite.run(Outcomes())


def run_shard(arguments, tests, agent):
    """Outcomes of these tests in a new process; a test that ends the whole process is "lost"."""
    environment = {key: value for key, value in os.environ.items() if key not in ("BACKEND", "INIT_METHOD", "WORLD_SIZE", "TEMP_DIR")}
    environment["SUITE_START"] = arguments.start
    spool = tempfile.mkdtemp(prefix="ddpspool_")
    if agent:
        environment.update(LD_PRELOAD=str(Path(agent).resolve()), DDPDOCTOR_SPOOL=spool)
    outcomes = {}
    while tests:
        command = shlex.split(arguments.before) + ["env"]
        command += [f"{key}={environment.pop(key)}" for key in ("LD_PRELOAD", "DDPDOCTOR_SPOOL") if key in environment]
        process = subprocess.Popen(command + [sys.executable, __file__, *tests], env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, start_new_session=True)
        if agent:
            environment.update(LD_PRELOAD=str(Path(agent).resolve()), DDPDOCTOR_SPOOL=spool)
        for line in process.stdout:
            if line.startswith("OUTCOME "):
                told = json.loads(line[len("OUTCOME "):])
                outcomes[told["test"]] = told
        process.wait()
        try:
            os.killpg(process.pid, signal.SIGKILL)  # processes that a test left behind
        except ProcessLookupError:
            pass
        tests = [test for test in tests if test not in outcomes]
        if tests:
            outcomes[tests[0]] = {"test": tests[0], "outcome": "lost", "why": f"the test process ended with {process.returncode}"}
            tests = tests[1:]
    rings = len(os.listdir(spool))
    shutil.rmtree(spool)
    return outcomes, rings


def differ(entry):
    """True if no outcome under the agent was also seen bare: a test that fails by chance differs by chance."""
    return bool(entry) and not set(entry["bare"]) & set(entry["agent"])


def compare(arguments):
    started = time.time()
    results = Path(arguments.results)
    seen = json.loads(results.read_text()) if results.exists() else {}
    tests = choose(arguments.only)
    left = [test for test in tests if test not in seen]
    rings = 0
    for first in range(0, len(left), arguments.shard):
        shard = left[first:first + arguments.shard]
        bare, _ = run_shard(arguments, shard, None)
        agent, made = run_shard(arguments, shard, arguments.agent)
        rings += made
        for test in shard:
            seen[test] = {"bare": [bare[test]["outcome"]], "agent": [agent[test]["outcome"]], "why": agent[test]["why"] or bare[test]["why"]}
            for _ in range(2 if differ(seen[test]) else 0):
                seen[test]["bare"].append(run_shard(arguments, [test], None)[0][test]["outcome"])
                seen[test]["agent"].append(run_shard(arguments, [test], arguments.agent)[0][test]["outcome"])
            if differ(seen[test]):
                print(f"DIFFERS {test}: bare {seen[test]['bare']}, agent {seen[test]['agent']}: {seen[test]['why']}", flush=True)
        results.write_text(json.dumps(seen, indent=1))
        print(f"{len(seen)} of {len(tests)}", flush=True)
    chosen = {test: seen[test] for test in tests}
    apart = [test for test, entry in chosen.items() if differ(entry)]
    unsteady = [test for test, entry in chosen.items() if len(entry["bare"]) > 1 and test not in apart]
    counts = collections.Counter(entry["bare"][-1] for entry in chosen.values())
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    print(f"{len(chosen)} tests, ranks by {arguments.start}: {said}; {len(apart)} differ under the agent, {len(unsteady)} by chance {unsteady}; "
          f"{rings} rings; {time.time() - started:.0f} s")
    return 1 if apart or (left and rings == 0) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--agent", default="build/release/libddpdoctor_agent.so")
    parser.add_argument("--only", default="", help="tests whose names contain this")
    parser.add_argument("--start", choices=("fork", "spawn"), default="fork")
    parser.add_argument("--shard", type=int, default=12, help="tests in one process")
    parser.add_argument("--results", default="torch_suite.json", help="kept as it grows; tests in it are not run again")
    parser.add_argument("--before", default="", help="words before each shard's command")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(choose(arguments.only)))
        return 0
    if arguments.compare:
        return compare(arguments)
    run_here(arguments.tests)
    return 0


if __name__ == "__main__":
    code = main()
    if "TOP" in globals():
        shutil.rmtree(TOP, ignore_errors=True)
    sys.exit(code)
