# SPDX-License-Identifier: Apache-2.0
"""Gives neutral names to the user's names in a ddpdoctor.capture/1 (its frames, call sites and source lines); reads .ddpd recordings as
captures.

A recording may have only some lines of a file: then each line is parsed by itself. A function called by a library keeps its name, because
the library looks it up by name."""
import ast
import ctypes
import ctypes.util
import json
import re
import struct
import textwrap
from pathlib import Path

import names as naming

MAGIC = b"\x89DDPD\r\n\x1a"
LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python3|^<frozen |^<string>|^<stdin>")
ALIASES = {"dist", "np", "nn", "F", "DDP", "FSDP", "torch", "mp", "tdist", "pl", "L", "tqdm", "MPI", "comm", "plt", "pd", "optim", "xm",
           "DistributedDataParallel", "FullyShardedDataParallel", "DataLoader", "DistributedSampler", "Join", "SyncBatchNorm"}
# Attributes of frameworks that may not be installed here: in single lines it is not visible that the object is a library's.
FRAMEWORKS = {"is_global_zero", "global_rank", "is_main_process", "is_local_main_process", "process_index", "is_world_process_zero", "is_world_zero",
              "should_stop", "should_training_stop", "trainer", "accelerator"}

QUOTES = {"expression", "reason", "over", "value"}  # fields that quote the source


def load(file):
    """The capture as a value; of a .ddpd the frames one after the other."""
    raw = Path(file).read_bytes()
    if not raw.startswith(MAGIC):
        return json.loads(raw)
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    text, at = b"", len(MAGIC) + 8  # version and a reserved word
    while at + 8 <= len(raw):
        packed, size = struct.unpack_from("<II", raw, at)
        if packed == 0:
            break
        out = ctypes.create_string_buffer(max(size, 1))
        assert zstd.ZSTD_decompress(out, ctypes.c_size_t(size), raw[at + 8:at + 8 + packed], ctypes.c_size_t(packed)) == size, "damaged frame"
        text += out.raw[:size]
        at += 8 + packed
    return json.loads(text)


def is_users(file):
    return bool(file) and str(file).endswith(".py") and not LIBRARY.search(file)


def frames_of(capture):
    for observation in capture.get("observations", []):
        for process in observation.get("processes", []):
            for thread in process.get("threads", []):
                yield [f for f in thread.get("frames", []) if isinstance(f, dict)]


def called_by_libraries(capture):
    """Names of the user's functions whose caller is a library: hooks, methods of its classes."""
    found = set()
    for frames in frames_of(capture):
        python = [f for f in frames if f.get("language") == "python"]
        for inner, outer in zip(python, python[1:]):
            if is_users(inner.get("file")) and not is_users(outer.get("file")):
                found |= set((inner.get("function") or "").split("."))
    return found


def whole_text(lines):
    """The text of a file whose lines are known; missing ones are empty."""
    if not lines:
        return ""
    last = max(int(number) for number in lines)
    return "".join(lines.get(str(number), "") + "\n" for number in range(1, min(last, 200_000) + 1))


def names_of_lines(lines):
    """Names that single lines of a file bind or read as attributes, if the file as a whole does not parse."""
    bound = set()
    for line in lines.values():
        text = textwrap.dedent(line).strip()
        for tried in (text, text + " pass", "if 1: pass\n" + text + " pass", "try: pass\n" + text + " pass"):
            try:
                tree = ast.parse(tried)
            except (SyntaxError, ValueError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and node.id not in ALIASES and naming.import_quietly(node.id) is None:
                    bound.add(node.id)
                elif isinstance(node, ast.Attribute) and node.attr not in naming.library_attributes():
                    if not (isinstance(node.value, ast.Name) and (node.value.id in ALIASES or naming.import_quietly(node.value.id))):
                        bound.add(node.attr)
                elif isinstance(node, ast.FunctionDef):
                    bound |= {node.name, *(one.arg for one in node.args.args)}
            break
    return bound


def named_in_texts(capture):
    """Stems of files that logs and messages name: their text does not change, so the files keep their names, too."""
    facts = [{key: value for key, value in fact.items() if not key.endswith("file")} for fact in capture.get("facts", [])]
    texts = json.dumps([capture.get("logs", []), facts])
    return {match.group(1) for match in re.finditer(r"(\w+)\.py\b", texts)}


def plan(capture, seed):
    sources = {path: lines for path, lines in (capture.get("sources") or {}).items() if is_users(path)}
    whole, parts = {}, {}
    for path, lines in sources.items():
        text = whole_text(lines)
        try:
            ast.parse(text)
            whole[path] = text
        except (SyntaxError, ValueError):
            parts[path] = lines
    names, _ = naming.plan({**whole, **{path: "" for path in parts}}, seed)
    more = set().union(*(names_of_lines(lines) for lines in parts.values())) if parts else set()
    for frames in frames_of(capture):
        for frame in frames:
            if frame.get("language") == "python" and is_users(frame.get("file")):
                more.add(Path(frame["file"]).stem)
                if frame["file"] not in whole:
                    more |= {part for part in (frame.get("function") or "").split(".") if part.isidentifier()}
    for call in capture.get("collectives", []):
        site = call.get("call_site") or {}
        if is_users(site.get("file")):
            more.add(Path(site["file"]).stem)
    kept = naming.FIXED | called_by_libraries(capture) | ALIASES | {"__init__", "__main__"} | FRAMEWORKS
    more = sorted(n for n in more - set(names) - kept if n.isidentifier() and not n.startswith("__"))
    names.update(zip(more, (f"k{name[1:]}" for name in naming.fresh_names(len(more), seed))))
    fixed = called_by_libraries(capture) | named_in_texts(capture) | FRAMEWORKS
    return {old: new for old, new in names.items() if old not in fixed}


def renamed_path(path, names):
    if not is_users(path):
        return path
    stem = Path(path).stem
    return str(Path(path).with_name(names.get(stem, stem) + ".py"))


def renamed(capture, seed):
    """(the capture with neutral names, old → new names)."""
    capture = json.loads(json.dumps(capture))
    names = plan(capture, seed)

    def rename_place(place):
        for role in ("", "handler_", "reached_"):  # of an exception, of a call through a variable
            file, function = f"{role}file", f"{role}function"
            if not is_users(place.get(file)):
                continue
            place[file] = renamed_path(place[file], names)
            if place.get(function):
                place[function] = ".".join(names.get(part, part) for part in place[function].split("."))

    def rename_all(value):
        """Every place, and every text that quotes the source, wherever it is."""
        if isinstance(value, list):
            for one in value:
                rename_all(one)
        elif isinstance(value, dict):
            rename_place(value)
            for key in QUOTES & set(value):
                if isinstance(value[key], str):
                    value[key] = naming.rewritten(value[key], names)
            if is_users(value.get("file")) and isinstance(value.get("locals"), list):
                value["locals"] = [[naming.rewritten(word, names) if isinstance(word, str) else word for word in pair] for pair in value["locals"]]
            for one in value.values():
                rename_all(one)

    for part in ("observations", "collectives", "facts"):
        rename_all(capture.get(part) or [])
    sources = {}
    for path, lines in (capture.get("sources") or {}).items():
        if not is_users(path):
            sources[path] = lines
            continue
        text = naming.rewritten(whole_text(lines), names).split("\n")
        sources[renamed_path(path, names)] = {number: text[int(number) - 1] for number in lines if int(number) <= len(text)}
    if sources:
        capture["sources"] = sources
    for process in (p for o in capture.get("observations", []) for p in o.get("processes", [])):
        command = process.get("command")
        if isinstance(command, list):
            process["command"] = [re.sub(r"(\w+)\.py$", lambda m: names.get(m.group(1), m.group(1)) + ".py", w) if isinstance(w, str) else w for w in command]
    return capture, names
