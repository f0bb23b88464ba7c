# SPDX-License-Identifier: Apache-2.0
"""Recordings that earlier versions wrote, one folder for each version of the format (recordings/v1/KIND__STORY.ddpd): today's program
says of them what it says of the capture of that name. They are never written anew; a new version adds a folder."""
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FORMAT = HERE.parents[1] / "collector/recording/recording.h"
RECORDINGS = sorted(HERE.glob("recordings/v*/*.ddpd"))


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recording_of_an_earlier_version_is_read(recording):
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")}
    done = subprocess.run([os.environ["DDPDOCTOR"], "report", recording.name], cwd=recording.parent, env={**environment, "LC_ALL": "C", "NO_COLOR": "1"},
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout == (HERE / f"{recording.stem}.txt").read_text()


def test_every_version_of_the_format_has_recordings():
    newest = int(re.search(r"kVersion = (\d+);", FORMAT.read_text())[1])
    assert {path.parent.name for path in RECORDINGS} == {f"v{version}" for version in range(1, newest + 1)}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recording_says_the_version_of_its_folder(recording):
    data = recording.read_bytes()
    assert data[:8] == b"\x89DDPD\r\n\x1a"
    assert int.from_bytes(data[8:12], "little") == int(recording.parent.name[1:])
