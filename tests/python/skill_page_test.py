# SPDX-License-Identifier: Apache-2.0
"""docs/agents.md can be used as a skill file unchanged: its first lines are fields that programs read."""
import pytest

from conftest import ROOT


def test_the_page_for_agents_begins_with_its_name_and_when_to_use_it():
    yaml = pytest.importorskip("yaml")
    before, fields, page = (ROOT / "docs/agents.md").read_text().split("---\n", 2)
    told = yaml.safe_load(fields)
    assert before == "" and set(told) == {"name", "description"} and told["name"] == "ddpdoctor", told
    assert len(told["description"]) < 1024 and "PyTorch" in told["description"]
    assert page.startswith("# ")
