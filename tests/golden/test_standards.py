# SPDX-License-Identifier: Apache-2.0
"""Reports for other programs, checked against the standards: SARIF 2.1.0 (the properties that the standard requires, and their types) and
JUnit's XML as Ant writes it and Jenkins and GitLab read it. Written from the standards; their published schemas are not shipped."""
import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import jsonschema
import pytest

HERE = Path(__file__).resolve().parent
STORIES = ["healthy__groups.json", "mismatched_op.gloo", "rank_conditional_collective__lightning.json", "duplicate_rank__environment.json", "gpu_stalled__two_hosts.json",
           "undetermined__empty.json"]

pytestmark = pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")

TEXT = {"type": "string", "minLength": 1}
MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": TEXT}}                                       # 3.11
REGION = {"type": "object", "required": ["startLine"],                                                                 # 3.30
          "properties": {key: {"type": "integer", "minimum": 1} for key in ("startLine", "startColumn", "endLine", "endColumn")}}
LOCATION = {"type": "object", "properties": {                                                                          # 3.28, 3.29, 3.4
    "message": MESSAGE,
    "physicalLocation": {"type": "object", "required": ["artifactLocation"], "properties": {
        "region": REGION, "artifactLocation": {"type": "object", "required": ["uri"], "properties": {"uri": TEXT, "uriBaseId": TEXT}}}}}}
RESULT = {"type": "object", "required": ["message", "ruleId"], "properties": {                                         # 3.27
    "message": MESSAGE, "ruleId": TEXT, "ruleIndex": {"type": "integer", "minimum": 0},
    "level": {"enum": ["none", "note", "warning", "error"]}, "kind": {"enum": ["pass", "open", "informational", "notApplicable", "review", "fail"]},
    "locations": {"type": "array", "items": LOCATION}, "relatedLocations": {"type": "array", "items": LOCATION},
    "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}}}}
RULE = {"type": "object", "required": ["id"], "properties": {"id": TEXT, "shortDescription": MESSAGE, "fullDescription": MESSAGE, "help": MESSAGE}}  # 3.49
DRIVER = {"type": "object", "required": ["name"], "properties": {                                                      # 3.19
    "name": TEXT, "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"}, "rules": {"type": "array", "items": RULE, "uniqueItems": True}}}
SARIF = {"type": "object", "required": ["version", "runs"], "properties": {                                            # 3.13, 3.14
    "version": {"const": "2.1.0"}, "$schema": {"type": "string", "format": "uri"},
    "runs": {"type": "array", "items": {"type": "object", "required": ["tool", "results"], "properties": {
        "tool": {"type": "object", "required": ["driver"], "properties": {"driver": DRIVER}}, "results": {"type": "array", "items": RESULT}}}}}}

SUITE = {"name": r".+", "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "hostname": r".+", "tests": r"\d+", "failures": r"\d+", "errors": r"\d+", "time": r"\d+(\.\d+)?"}
CASE = {"name": r".+", "classname": r".+", "time": r"\d+(\.\d+)?"}


def rendered(story, ending, folder):
    out = folder / f"report.{ending}"
    done = subprocess.run([os.environ["DDPDOCTOR"], "report", story, "-o", out], cwd=HERE, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode in (0, 1), done.stderr
    return out


def expect_attributes(element, wanted):
    for name, pattern in wanted.items():
        assert re.fullmatch(pattern, element.get(name, "")), f"{element.tag} {name}={element.get(name)!r}"


@pytest.mark.parametrize("story", STORIES)
def test_sarif_is_what_the_standard_demands(story, tmp_path):
    log = json.loads(rendered(story, "sarif", tmp_path).read_text())
    jsonschema.validate(log, SARIF)
    [run] = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"].get("rules", [])]
    assert len(set(rules)) == len(rules)
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert "ruleIndex" not in result or rules[result["ruleIndex"]] == result["ruleId"]
        for location in result.get("locations", []) + result.get("relatedLocations", []):
            uri = location["physicalLocation"]["artifactLocation"]["uri"]
            assert " " not in uri and urlsplit(uri).scheme in ("", "file"), uri


@pytest.mark.parametrize("story", STORIES)
def test_junit_is_what_its_readers_demand(story, tmp_path):
    suites = ElementTree.parse(rendered(story, "xml", tmp_path)).getroot()
    assert suites.tag == "testsuites"
    for suite in suites:
        assert suite.tag == "testsuite"
        expect_attributes(suite, SUITE)
        order = [child.tag for child in suite]
        ranks = ["properties", "testcase", "system-out", "system-err"]
        assert order == sorted(order, key=ranks.index)
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases)
        assert int(suite.get("failures")) == sum(case.find("failure") is not None for case in cases)
        assert int(suite.get("errors")) == sum(case.find("error") is not None for case in cases)
        assert len({case.get("name") for case in cases}) == len(cases)
        for case in cases:
            expect_attributes(case, CASE)
            for outcome in case:
                assert outcome.tag in ("failure", "error", "skipped", "system-out", "system-err")
                assert outcome.tag not in ("failure", "error") or outcome.get("type")
