# SPDX-License-Identifier: Apache-2.0
"""A part of `./dev zoo --multinode`: real jobs on three nodes, and how the snapshots of the nodes are timed."""
import re

import pytest
from cluster import missing
from multinode import CI_CASES, cases, one_side

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.mark.parametrize("case", [case for case in cases([], True)], ids=lambda case: case["name"])
def test_a_fault_is_named_with_its_host(case):
    wrong, printed = one_side(case, False)
    assert not wrong, printed


def test_a_healthy_job_is_met_with_silence_and_all_nodes_look_at_once():
    (case,) = [case for case in cases([], False) if case["name"] == "mismatch"]
    reports = []
    wrong, printed = one_side(case, True, reports=reports)
    assert not wrong, printed
    (report,) = reports
    said = " ".join(report["coverage"]["observed"])
    apart = re.search(r"3 of 3 nodes answered and took their snapshots within (\d+) ms of each other", said)
    assert apart, said  # more than a second is reported with other words
    assert set(report["job"]["hosts"]) == {"node1", "node2", "node3"}
    assert len({(process["host"], process["pid"]) for process in report["processes"]}) == len(report["processes"]) == 9
    assert len({process["pid"] for process in report["processes"]}) < 9, "no pid is on two nodes: the test shows less than it should"


def test_the_small_part_exists():
    assert CI_CASES <= {case["name"] for case in cases([], False)}
