# SPDX-License-Identifier: Apache-2.0
"""Completion and manual pages, as read by the shells and groff."""
import os
import shutil
import subprocess

import pytest

TOOL = os.environ["DDPDOCTOR"]


def printed(*words):
    return subprocess.run([TOOL, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def completed(*words):
    """What bash offers for the last word."""
    typed = " ".join(f"'{word}'" for word in words)
    script = f"source <('{TOOL}' completion bash); COMP_WORDS=(ddpdoctor {typed}); COMP_CWORD={len(words)}; _ddpdoctor; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_bash_completes_commands_options_and_kinds():
    assert completed("att") == ["attach"]
    assert completed("attach", "--sa") == ["--samples"]
    assert completed("explain", "unused-p") == ["unused-parameters"]
    assert completed("help", "rep") == ["report"]


def test_bash_leaves_the_words_of_the_job_alone():
    assert completed("run", "--", "torchrun", "--sa") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_its_shell(shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=printed("completion", shell), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("page", [[], ["attach"], ["run"], ["pyspy"]])
def test_groff_reads_the_page_without_a_warning(page):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    done = subprocess.run(["groff", "-ww", "-man", "-Tascii", "-P-cbou"], input=printed("man", *page), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    assert "NAME" in done.stdout and "ddpdoctor" in done.stdout
