# SPDX-License-Identifier: Apache-2.0
"""What others publish and we do not copy: schemas of SARIF and JUnit, dumps of jobs with a known fault. $DDPDOCTOR_FOREIGN is a folder with any of

  sarif-schema-2.1.0.json   oasis-tcs/sarif-spec, sarif-2.1/schema
  junit-10.xsd              jenkinsci/xunit-plugin, src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd
  JUnit.xsd                 windyroad/JUnit-Schema
  fr_traces/                NVIDIA/nvidia-resiliency-ext, tests/attribution/unit

Skipped for what is not there, and without jsonschema or xmlschema."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import golden

FOREIGN = Path(os.environ.get("DDPDOCTOR_FOREIGN", "nowhere"))
TRACES = {"gpu_error_1st": [12], "gpu_error_2nd": [9, 14], "lock_gil_1st": [9, 14], "lock_gil_2nd": [10, 15]}  # what its own tests expect

pytestmark = pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")


def needs(name):
    return pytest.mark.skipif(not (FOREIGN / name).exists(), reason=f"DDPDOCTOR_FOREIGN has no {name}")


def written(files, target):
    done = subprocess.run([os.environ["DDPDOCTOR"], "report", *files, "-o", str(target)], cwd=golden.HERE, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    assert done.returncode in (0, 1), done.stderr
    return target


def inputs():
    """Every golden capture and folder of dumps."""
    dumps = ([file for file in sorted(folder.iterdir()) if file.name != "expected.json"] for folder in sorted((golden.HERE / "dumps").iterdir()))
    return [[capture] for capture in golden.captures()] + [files for files in dumps if files]


@needs("sarif-schema-2.1.0.json")
def test_every_sarif_fits_its_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((FOREIGN / "sarif-schema-2.1.0.json").read_text())
    judge = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    wrong = [(files[0].name, error.message) for files in inputs() for error in judge.iter_errors(json.loads(written(files, tmp_path / "o.sarif").read_text()))]
    assert wrong == []


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in ("junit-10.xsd", "JUnit.xsd")])
def test_every_junit_fits_both_schemas(name, tmp_path):
    schema = pytest.importorskip("xmlschema").XMLSchema(str(FOREIGN / name))
    wrong = [(files[0].name, error.reason) for files in inputs() for error in schema.iter_errors(str(written(files, tmp_path / "o.xml")))]
    assert wrong == []


@needs("fr_traces")
@pytest.mark.parametrize("trace", TRACES)
def test_the_faults_of_nvidias_traces_are_named(trace, tmp_path):
    report = json.loads(written([FOREIGN / "fr_traces" / trace], tmp_path / "o.json").read_text())
    assert report["findings"][0]["culprits"] == TRACES[trace]
