# SPDX-License-Identifier: Apache-2.0
"""golden.py for pytest: one test for each capture, and one for each rendering. Skipped without a tool in $DDPDOCTOR."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import golden
import renderings


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("capture", golden.captures(), ids=lambda capture: capture.name.removesuffix(".json"))
def test_report_says_what_is_expected(capture):
    assert golden.problems(capture) == []


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("ending", renderings.ENDINGS)
@pytest.mark.parametrize("story", renderings.STORIES)
def test_every_format_is_written_as_expected(story, ending):
    assert renderings.problems(story, ending) == []
