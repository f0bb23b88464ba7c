# SPDX-License-Identifier: Apache-2.0
"""The documentation has what a reader needs: links exist, and messages lead to the kind that the page names."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ["DDPDOCTOR"]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links(page):
    return [(page.parent / link).resolve() for link in LINK.findall(page.read_text()) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page):
    assert [str(link) for link in links(page) if not link.exists()] == []


def test_every_page_is_in_the_index():
    index = set(links(ROOT / "docs" / "README.md"))
    assert [page.name for page in PAGES if page.name != "README.md" and page not in index] == []


# What a reader types or needs, and what must be within two links of the README.
TASKS = {
    "my job hangs under Slurm": ["ddpdoctor attach --slurm"],
    "CI went red, what now": ["ddpdoctor report", "exit status 124"],
    "attach says permission denied": ["--cap-add=SYS_PTRACE", "ptrace_scope"],
}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_answered_within_two_links_of_the_readme(task):
    near = {ROOT / "README.md"}
    for _ in range(2):
        near |= {link for page in near for link in links(page) if link.suffix == ".md"}
    missing = [text for text in TASKS[task] if not any(text in page.read_text() for page in near)]
    assert missing == []


def rows(heading):
    """Message and kind of each row of the table below a heading of docs/troubleshooting.md."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    section = text[text.index(f"## {heading}"):].split("\n## ", 1)[0]
    return re.findall(r"^\| `(.+?)` \| ([a-z-]+) \|$", section, re.M)


UNIQUE = rows("Messages with one meaning")
SHARED = rows("Messages that several programs print")


def diagnosed(message, folder):
    (folder / "train.log").write_text(message + "\n")
    done = subprocess.run([TOOL, "report", "train.log", "--format", "json"], cwd=folder, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)["findings"][0]


def test_the_tables_are_read():
    assert len(UNIQUE) >= 11 and len(SHARED) >= 2


@pytest.mark.parametrize("message,kind", UNIQUE, ids=[kind for _, kind in UNIQUE])
def test_a_message_with_one_meaning_gives_the_kind_that_the_page_names(message, kind, tmp_path):
    found = diagnosed(message, tmp_path)
    assert (found["kind"], found["confidence"]) == (kind, "likely")


@pytest.mark.parametrize("message,kind", SHARED, ids=[kind for _, kind in SHARED])
def test_a_message_of_several_programs_is_only_possible(message, kind, tmp_path):
    found = diagnosed(message, tmp_path)
    assert (found["kind"], found["confidence"]) == (kind, "possible")
