# SPDX-License-Identifier: Apache-2.0
"""Every format that ddpdoctor writes, of three of the stories here: what stands in renderings/STORY.ENDING, byte for byte. `golden.py --update` writes
them anew; test_foreign_material.py holds the same files against the schemas of others.

What every new cause would change is taken out before: SARIF's rules without a result, JUnit's cases without a failure, the page's script and style
(the report that it holds is what is compared). Flight-recorder files, pickles, are compared as what they unpickle to."""
import difflib
import json
import os
import pickle
import re
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "renderings"
STORIES = ("mismatched_op.gloo", "rank_conditional_collective__lightning.json", "healthy__groups.json")
ENDINGS = (".md", ".github.txt", ".sarif", ".xml", ".dot", ".perfetto.json", ".json", ".html", ".fr")


def pretty(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def of_sarif(text):
    log = json.loads(text)
    for run in log["runs"]:
        told = {result["ruleId"] for result in run["results"]}
        run["tool"]["driver"]["rules"] = [rule for rule in run["tool"]["driver"]["rules"] if rule["id"] in told]
        for result in run["results"]:
            result.pop("ruleIndex", None)
    return pretty(log)


def of_junit(text):
    text = re.sub(r' (tests|skipped)="\d+"', "", text)
    text = re.sub(r'\n *<testcase [^>]*>\n *<skipped [^>]*/>\n *</testcase>', "", text)
    return re.sub(r"\n *<testcase [^>]*/>", "", text)


def of_page(text):
    held = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)
    return pretty(json.loads(held.group(1)))


def of_flight_recorder(folder):
    return pretty({file.name: pickle.loads(file.read_bytes()) for file in sorted(folder.iterdir())})


TIDIED = {".sarif": of_sarif, ".xml": of_junit, ".html": of_page}


def rendering(story, ending):
    """What ddpdoctor writes for the story, tidied; None if the story has nothing in that format."""
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")}
    with tempfile.TemporaryDirectory(prefix="ddpgolden_") as folder:
        target = Path(folder) / f"report{ending}"
        wanted = ["--format", "github"] if ending == ".github.txt" else ["-o", str(target)]
        done = subprocess.run([os.environ.get("DDPDOCTOR", "ddpdoctor"), "report", story, *wanted], cwd=HERE, env={**environment, "LC_ALL": "C"},
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if ending == ".github.txt":
            return done.stdout
        if not target.exists():
            return None
        return of_flight_recorder(target) if target.is_dir() else TIDIED.get(ending, str)(target.read_text())


def expected_file(story, ending):
    name = story.removesuffix(".json") + ending
    return FOLDER / (name + ".json" if ending in (".html", ".fr") else name)


def problems(story, ending, update=False):
    """The errors, as sentences; empty if there is none."""
    text, expected = rendering(story, ending), expected_file(story, ending)
    if update:
        FOLDER.mkdir(exist_ok=True)
        expected.unlink(missing_ok=True)
        if text is not None:
            expected.write_text(text)
    told = expected.read_text() if expected.exists() else None
    if text == told:
        return []
    lines = difflib.unified_diff((told or "").splitlines(True), (text or "").splitlines(True), expected.name, "written now")
    return ["the file differs:\n" + "".join(lines)]
