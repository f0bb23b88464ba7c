# SPDX-License-Identifier: Apache-2.0
"""The names that a file of C++ defines for itself, read from the house's layout: what is in a namespace is not indented. A unity build
(cmake/unity.cmake) compiles the files of a folder together, so such a name may occur once in a folder; an alias may be repeated."""
import collections
import re

NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{$")
TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)\b[^;]*$")
FUNCTION = re.compile(r"[^=({;]*?[\s&*](\w+)\((.*)")
VARIABLE = re.compile(r"(?:static |constexpr |const |constinit |inline )[^=({;]*?(\w+)(?:\[\w*\])* ?[={;]")


def parameters(text):
    """Types of a parameter list; text starts behind its bracket."""
    types, depth, one = [], 0, ""
    for letter in text:
        if letter == ")" and depth == 0:
            break
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            types.append(one)
            one = ""
        else:
            one += letter
    types.append(one)
    return tuple(re.sub(r"(?<=[\s&*>])\w+$", "", re.sub(r"\s*=.*", "", " ".join(one.split()))).strip() for one in types)


def own_names(text):
    """Of each name in an unnamed namespace: (namespace, name, what a second definition must not repeat, line)."""
    spaces, lines = [], text.split("\n")
    for number, line in enumerate(lines, 1):
        opened = NAMESPACE.match(line)
        if opened:
            spaces.append(opened[1])
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif "" in spaces and line[:1].isalpha() and not line.startswith(("template", "using", "static_assert")):
            whole = " ".join(lines[number - 1:number + 12])
            space = "::".join(filter(None, spaces))
            kind, name, function = TYPE.match(line), VARIABLE.match(whole), FUNCTION.match(whole)
            if kind:
                yield space, kind[1], (), number
            elif function and not (name and name.end(1) < function.end(1)):
                yield space, function[1], parameters(function[2]), number
            elif name:
                yield space, name[1], (), number


def repeated(files):
    """files: {path: text}. Yields (path, line, name, path of the first definition)."""
    seen = collections.defaultdict(dict)
    for path, text in sorted(files.items()):
        for space, name, signature, line in own_names(text):
            first = seen[path.rpartition("/")[0], space, name].setdefault(signature, path)
            if first != path:
                yield path, line, name, first
