# SPDX-License-Identifier: Apache-2.0
"""A new cause is three new files and no edited list, shown in a copy of the tree. The build of the copy takes minutes without a
cache and runs only with DDPDOCTOR_SLOW_TESTS=1."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KIND, STEM = "demo-kind", "demo_kind"
FILES = [f"collector/detectors/{STEM}.cc", f"tests/unit/detectors/{STEM}_test.cc", f"tests/zoo/{STEM}/train.py"]


def git(folder, *words):
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path):
    """The tree as it stands, committed in a repository of its own, with the new cause."""
    copy = tmp_path / "tree"
    for name in git(ROOT, "ls-files", "-co", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    git(copy, "init", "-q")
    git(copy, "add", "-A", "-f")
    git(copy, "commit", "-q", "-m", "tree")
    subprocess.run(["bash", "dev", "new-detector", KIND], cwd=copy, check=True, capture_output=True)
    return copy


def test_a_new_cause_is_three_new_files_and_no_edited_list(tree):
    assert sorted(git(tree, "status", "--porcelain", "-uall").splitlines()) == sorted(f"?? {name}" for name in FILES)


def test_the_zoo_finds_the_new_case_and_lint_finds_nothing_missing(tree):
    asked = "import sys; sys.path.insert(0, 'tests/zoo'); import json, zoo; print(json.dumps(list(zoo.cases(['demo_kind'], False))))"
    found = json.loads(subprocess.run([sys.executable, "-c", asked], cwd=tree, check=True, capture_output=True, text=True).stdout)
    assert found == [[STEM, {"script": "train.py", "kind": KIND, "launch": "torchrun", "ranks": 2, "culprits": [0]}]]
    compile((tree / FILES[2]).read_text(), FILES[2], "exec")
    said = subprocess.run([sys.executable, "tests/support/lint.py"], cwd=tree, capture_output=True, text=True).stdout
    assert STEM not in said


@pytest.mark.skipif("DDPDOCTOR_SLOW_TESTS" not in os.environ, reason="builds the detectors of a copy; set DDPDOCTOR_SLOW_TESTS=1")
def test_the_catalog_of_the_copy_holds_the_new_cause(tree):
    subprocess.run(["cmake", "--preset", "release"], cwd=tree, check=True, capture_output=True)
    environment = {**os.environ, "CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": str(tree)}
    subprocess.run(["ninja", "-C", "build/release", "-j2", "ddpdoctor_detectors"], cwd=tree, check=True, env=environment, capture_output=True)
    library = tree / "build/release/collector/detectors/libddpdoctor_detectors.a"
    assert STEM in subprocess.run(["nm", "-C", library], check=True, capture_output=True, text=True).stdout
    assert f"&{STEM}," in (tree / "build/release/collector/detectors/catalog.cc").read_text()
    assert len(git(tree, "status", "--porcelain", "-uall").splitlines()) == len(FILES)
