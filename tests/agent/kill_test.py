# SPDX-License-Identifier: Apache-2.0
"""A short version of kill_rounds.py: each victim once."""
import random

import pytest

import kill_rounds
from guest import needs_agent

pytestmark = needs_agent


@pytest.mark.parametrize("victim", kill_rounds.VICTIMS)
def test_a_kill_leaves_a_true_report(victim):
    pytest.importorskip("torch")
    assert kill_rounds.one_round(victim, random.Random(kill_rounds.VICTIMS.index(victim))) == []
