#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules that a machine can check: layers, file sizes, detector triples, headers, formatting, words. `--tidy` adds clang-tidy on
the files that differ from the last commit's parent."""
import os
import re
import subprocess
import sys
from pathlib import Path

import unity_names
import wording

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 400
WIDTH = 120  # columns of a page
TABLE = re.compile(r"(?:^|[_/])(offsets|table|layouts)\.(cc|h)$")
FOLDERS = ("base", "wire", "agent", "collector", "viewer", "cli")


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [p for p in out.stdout.split() if (ROOT / p).is_file()]


def layers():
    """Every #include "…" against cmake/layers.txt."""
    allowed = {}
    for line in (ROOT / "cmake/layers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            folder, _, uses = line.partition(":")
            allowed[folder] = set(uses.split()) | {folder}

    def folder_of(path):
        return next((f for f in sorted(allowed, key=len, reverse=True) if path.startswith(f + "/")), None)

    for path in tracked("*.cc", "*.h"):
        folder = folder_of(path)
        if folder is None:
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            match = re.match(r'#include "([^"]+)"', line)
            target = folder_of(match[1]) if match else None
            if target and target not in allowed[folder]:
                yield f"{path}:{number}: {folder} may not include {match[1]} (cmake/layers.txt)"


def sizes():
    for path in tracked("*.cc", "*.h", "*.py", "*.js", "*.sh"):
        lines = (ROOT / path).read_text(errors="replace").count("\n")
        if lines > LIMIT and not TABLE.search(path):
            yield f"{path}: {lines} lines, more than {LIMIT}: two ideas in one file?"
        if path.endswith("cli/main.cc") and lines > 60:
            yield f"{path}: {lines} lines, more than 60"


def detector_triples():
    """A cause is three files: detector, unit test, zoo case (or a golden capture if no CPU job can show it)."""
    captures = " ".join(tracked("tests/golden/*"))
    for path in tracked(":(glob)collector/detectors/*.cc"):
        stem = Path(path).stem
        if not (ROOT / f"tests/unit/detectors/{stem}_test.cc").is_file():
            yield f"{path}: no tests/unit/detectors/{stem}_test.cc"
        if not (ROOT / f"tests/zoo/{stem}").is_dir() and f"tests/golden/{stem}" not in captures:
            yield f"{path}: neither tests/zoo/{stem}/ nor tests/golden/{stem}*"


def heads():
    for path in tracked("*.cc", "*.h", "*.py", "*.cmake"):
        head = (ROOT / path).read_text(errors="replace")[:200]
        if "SPDX-License-Identifier: Apache-2.0" not in head:
            yield f"{path}: no SPDX line at the top"
    for path in tracked("*.h"):
        if path.startswith(FOLDERS) and "#pragma once" not in (ROOT / path).read_text():
            yield f"{path}: no #pragma once"


def formatting():
    tool = Path(sys.executable).parent / "clang-format"
    files = [p for p in tracked("*.cc", "*.h")]
    if not tool.exists() or not files:
        return
    out = subprocess.run([tool, "--dry-run", *files], cwd=ROOT, capture_output=True, text=True)
    bad = sorted({line.split(":")[0] for line in out.stderr.splitlines() if "warning: code should be clang-formatted" in line})
    for path in bad:
        yield f"{path}: not formatted (./dev format)"


def links():
    """Relative links of the documentation must exist."""
    for path in tracked(":(glob)*.md", ":(glob)docs/**/*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / path).read_text()):
            if not (ROOT / path).parent.joinpath(target).exists():
                yield f"{path}: link to {target}, which is not there"


def widths():
    """Prose of a page: neither code nor a row of a table."""
    for path in tracked(":(glob)*.md", ":(glob)docs/**/*.md"):
        fenced = False
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            fenced ^= line.strip().startswith("```")
            if not fenced and not line.startswith(("|", "    ")) and len(line) > WIDTH:
                yield f"{path}:{number}: {len(line)} columns, more than {WIDTH}"


def words():
    """Plain words in sentences for users and in comments; summaries and fixes that are short."""
    for path in tracked("*.cc", "*.h", "*.c", "*.S", "*.inc"):
        for line, word, instead in wording.comment_problems((ROOT / path).read_text()):
            yield f"{path}:{line}: \"{word}\" in a comment: {instead}"
        if path.startswith(wording.FOLDERS):
            text = (ROOT / path).read_text()
            for line, word, instead in wording.problems(text):
                yield f"{path}:{line}: \"{word}\" in a sentence for users: {instead}"
            for line, count, limit in wording.long_sentences(text) if path.startswith("collector/detectors") else ():
                yield f"{path}:{line}: {count} words in one sentence, more than {limit}"


def unity():
    """A unity build compiles the files of a folder together."""
    files = {path: (ROOT / path).read_text() for path in tracked("*.cc") if path.startswith(FOLDERS) and not path.startswith("agent/")}
    headers = {path: (ROOT / path).read_text() for path in tracked("*.h")}
    for path, line, name, first in unity_names.repeated(files, headers):
        yield f"{path}:{line}: {name} is also defined in {first}; names of a file are unique in its folder (cmake/unity.cmake)"


def tidy():
    tool = Path(sys.executable).parent / "clang-tidy"
    changed = subprocess.run(["git", "diff", "--name-only", "HEAD~1", "--", "*.cc"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    files = [p for p in changed if p.startswith(FOLDERS) and (ROOT / p).is_file()]
    if files:
        out = subprocess.run([tool, "-p", "build/dev", "--quiet", *files], cwd=ROOT, capture_output=True, text=True)
        yield from sorted({line for line in out.stdout.splitlines() if re.search(r": (warning|error):", line)})


def main():
    os.chdir(ROOT)
    checks = [layers, sizes, detector_triples, heads, formatting, links, widths, words, unity] + ([tidy] if "--tidy" in sys.argv[1:] else [])
    problems = [problem for check in checks for problem in check()]
    for problem in problems:
        print(problem)
    print(f"lint: {len(problems)} problems in {len(checks)} checks")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
