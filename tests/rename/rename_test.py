# SPDX-License-Identifier: Apache-2.0
"""The renaming itself, and the captures of tests/golden with neutral names: no result depends on a name."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import captures
import names as naming
import shapes
import suite

PROGRAM = '''import sys
import torch

LIMIT = 3


class Box:
    def __init__(self, size):
        self.size_of_it = size

    @property
    def is_full(self):
        return self.size_of_it > LIMIT


def fill(box, amount=1):
    if box.is_full:
        print(f"full {box.size_of_it}", flush=True)  # CULPRIT


def main(words):
    box = Box(size=len(words))
    fill(box, amount=2)
    if "loud" in words:
        print("loud")
    elif box.size_of_it == 2:
        print("two")
    fill(Box(9))


main(sys.argv[1:])
'''


def output(text, folder, *words, modules=None):
    folder.mkdir(exist_ok=True)
    for name, body in (modules or {}).items():
        (folder / name).write_text(body)
    (folder / "program.py").write_text(text)
    return subprocess.run([sys.executable, "program.py", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}).stdout


PLAIN = PROGRAM.replace("import torch\n", "")


@pytest.mark.parametrize("words", [(), ("a", "b"), ("loud", "a", "b", "c")])
def test_a_renamed_program_does_the_same(tmp_path, words):
    names, _ = naming.plan({"/srv/program.py": PLAIN}, 7)
    renamed = naming.rewritten(PLAIN, names)
    for word in ("Box", "size_of_it", "is_full", "fill", "amount", "LIMIT", "box"):
        assert word not in renamed.replace("full {", "")
    assert renamed.count("\n") == PLAIN.count("\n")
    assert output(renamed, tmp_path, *words) == output(PLAIN, tmp_path, *words)


@pytest.mark.parametrize("seed", range(6))
def test_a_program_in_other_shapes_does_the_same_and_its_lines_are_known(tmp_path, seed):
    program = shapes.reshaped(PLAIN, seed, "program")
    assert program.text() != PLAIN
    for words in ((), ("a", "b"), ("loud", "a", "b", "c")):
        assert output(program.text(), tmp_path, *words, modules=program.modules) == output(PLAIN, tmp_path, *words)
    marked = next(number for number, line in enumerate(program.text().split("\n"), 1) if "# CULPRIT" in line and "print" in line)
    assert program.origin(marked) == next(number for number, line in enumerate(PLAIN.split("\n"), 1) if "# CULPRIT" in line)


def test_names_that_a_library_asks_for_stay():
    text = "import threading\n\n\nclass Worker(threading.Thread):\n    def run(self):\n        own = getattr(self, 'asked')\n        return own\n\n    def asked(self):\n        return 1\n"
    names, _ = naming.plan({"/srv/one.py": text}, 1)
    assert "run" not in names and "asked" not in names and "Worker" in names and "own" in names


def test_names_that_the_program_puts_together_stay():
    text = "class Worker:\n    def do_train(self):\n        return 1\n\n    def redo(self, task):\n        return getattr(self, f'do_{task}')()\n"
    names, _ = naming.plan({"/srv/one.py": text}, 1)
    assert "do_train" not in names and {"Worker", "redo", "task"} <= set(names)


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="needs the program: $DDPDOCTOR")
@pytest.mark.parametrize("file", list(suite.listed([])), ids=lambda file: file.name)
def test_a_golden_capture_keeps_its_answer_when_it_is_renamed(file):
    capture = captures.load(file)
    if not str(capture.get("schema", "")).startswith("ddpdoctor.capture/"):
        pytest.skip("not a capture")
    renamed, names = captures.renamed(capture, 20261123)
    assert suite.differences(suite.first_finding(capture), suite.first_finding(renamed), names) == []
