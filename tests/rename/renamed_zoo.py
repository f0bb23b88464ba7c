#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the zoo anew with neutral names and in other shapes, expectations included; zoo.py in the new folder runs it as it runs the old one.

  renamed_zoo.py FOLDER [--seed N] [--names-only]

Names: names.py; shapes: shapes.py (`if` as early return, decorator, helper, property, other module, dict of callables). A script that is no
Python keeps its text. The seed is printed."""
import argparse
import ast
import datetime
import json
import re
import shutil
import sys
from pathlib import Path

import names as naming
import shapes

ZOO = Path(__file__).resolve().parent.parent / "zoo"


def renamed_words(text, names):
    return re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word.group(), word.group()), text)


def renamed_case(case, names):
    """An expectation with the new names of its files and functions."""
    told = dict(case)
    for key in ("script", "source", "location_file", "command"):
        if key in told:
            told[key] = re.sub(r"(\w+)(\.py\b)", lambda m: names.get(m.group(1), m.group(1)) + m.group(2), told[key])
    if "functions" in told:
        told["functions"] = [renamed_words(f, names) for f in told["functions"]]
    if "command" in told:  # `-m package.module`
        told["command"] = re.sub(r"(-m\s+)([\w.]+)", lambda m: m.group(1) + ".".join(names.get(p, p) for p in m.group(2).split(".")), told["command"])
    return told


def plans(texts, seed):
    """The new names of each file: files that import one another share one plan. Two plans never give the same file name."""
    stems = {path.stem: path for path in texts}
    program = {path: path for path in texts}  # file → the file that represents its program

    def speaker(path):
        while program[path] != path:
            path = program[path]
        return path

    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            words = []
            if isinstance(node, ast.Import):
                words = [word for alias in node.names for word in alias.name.split(".")]
            elif isinstance(node, ast.ImportFrom):
                words = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            for word in words:
                if word in stems and stems[word] != path:
                    program[speaker(path)] = speaker(stems[word])
    found = {}
    for number, head in enumerate(sorted({speaker(path) for path in texts})):
        members = {path: text for path, text in texts.items() if speaker(path) == head}
        names, modules = naming.plan({str(path): text for path, text in members.items()}, seed)
        names.update({module: f"f{number:02d}{names[module]}" for module in modules})
        found.update({path: names for path in members})
    return found


def rewrite_folder(folder, seed, names_only):
    """One folder of cases, in place."""
    files = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    texts = {}
    for path, text in files.items():
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        texts[path] = text
        if not names_only:
            program = shapes.reshaped(text, seed, path.stem)
            texts[path] = program.text()
            for module, body in program.modules.items():
                texts[path.parent / module] = body
    names_of = plans(texts, seed)
    for path in files:
        if path in texts:
            path.unlink()
    for path, text in texts.items():
        names = names_of[path]
        lines = naming.rewritten(text, names).split("\n")
        for number, line in enumerate(lines):
            if line.startswith("# EXPECT "):
                lines[number] = "# EXPECT " + json.dumps(renamed_case(json.loads(line[len("# EXPECT "):]), names))
        path.with_name(names.get(path.stem, path.stem) + ".py").write_text("\n".join(lines))
    expected = folder / "expected.json"
    if expected.exists():
        cases = json.loads(expected.read_text())
        of_script = {path.relative_to(folder).as_posix(): names for path, names in names_of.items()}
        expected.write_text(json.dumps([renamed_case(case, of_script.get(case["script"], {})) for case in cases], indent=1))


def write(target, seed, names_only=False):
    """The whole zoo into `target`, which must not exist."""
    shutil.copytree(ZOO, target, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in sorted(path for path in Path(target).iterdir() if path.is_dir()):
        rewrite_folder(folder, seed, names_only)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=int(datetime.date.today().strftime("%Y%m%d")))
    parser.add_argument("--names-only", action="store_true")
    options = parser.parse_args()
    if Path(options.folder).exists():
        print(f"renamed_zoo: {options.folder} exists; name a folder that does not", file=sys.stderr)
        return 2
    write(options.folder, options.seed, options.names_only)
    print(f"seed {options.seed}: {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
