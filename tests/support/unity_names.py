# SPDX-License-Identifier: Apache-2.0
"""The names that a file of C++ defines for itself, read from the house's layout: what is in a namespace is not indented. A unity build
(cmake/unity.cmake) compiles the files of a folder together, so such a name may occur once in a folder, and not in a header that a file of the
folder includes; an alias may be repeated. Neither may it hide a name of such a header (one of its namespace or of one around it) that another
file of the folder calls with arguments of no type of ours: the lookup ends at the inner one, whatever its parameters are. Overloads are two
definitions, too, where one is handed to an algorithm by its bare name: no argument then tells which of them is meant. A type or constant of a namespace is in one header only."""
import collections
import re

NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{$")
TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)\b(?!::)[^;]*$")
FUNCTION = re.compile(r"[^=({;]*?[\s&*](\w+)\((.*)")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
HANDED = re.compile(r"[(,]\s*(\w+)(?=\s*[,)])")
CALLED = re.compile(r"(?<![\w.>:~])(\w+)\(")
ALIAS = re.compile(r"^using (\w+) = ([\w:]+);", re.M)
VARIABLE = re.compile(r"(?:static |constexpr |const |constinit |inline )[^=({;]*?(\w+)(?:\[\w*\])* ?[={;]")


def parameters(text, aliases):
    """Types of a parameter list; text starts behind its bracket. aliases: {name in the file: its type}."""
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
    plain = (re.sub(r"\b\w+\b", lambda name: aliases.get(name[0], name[0]), re.sub(r"\s*=.*", "", " ".join(one.split()))) for one in types)
    bare = (re.sub(r"(?<=[\s&*>])\w+$", "", re.sub(r"\b\w+::", "", one)).strip() for one in plain)
    return tuple("string_view" if one == "const string&" else one for one in bare)  # a literal fits both


def names(text):
    """Of each name outside functions and types: (namespaces, name, what a second definition must not repeat, line)."""
    spaces, lines, aliases = [], text.split("\n"), dict(ALIAS.findall(text))
    for number, line in enumerate(lines, 1):
        opened = NAMESPACE.match(line)
        if opened:
            spaces.append(opened[1])
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif spaces and line[:1].isalpha() and not line.startswith(("template", "using", "static_assert")):
            whole = " ".join(lines[number - 1:number + 12])
            kind, name, function = TYPE.match(line), VARIABLE.match(whole), FUNCTION.match(whole)
            if kind:
                yield spaces, kind[1], (), number
            elif function and not (name and name.end(1) < function.end(1)):
                yield spaces, function[1], parameters(function[2], aliases), number
            elif name:
                yield spaces, name[1], (), number


def own_names(text):
    """Of each name in an unnamed namespace: (namespace, name, what a second definition must not repeat, line)."""
    return (("::".join(filter(None, spaces)), *rest) for spaces, *rest in names(text) if "" in spaces)


def included(path, texts, known):
    """The project's headers that a file includes, directly or not; known: {path: headers}, filled here."""
    if path not in known:
        known[path] = set()  # a circle ends here
        direct = {header for header in INCLUDE.findall(texts.get(path, "")) if header in texts}
        known[path] = direct.union(*(included(header, texts, known) for header in direct))
    return known[path]


def hidden(space, name, exported):
    """Whether a header's functions have the name in this namespace or around it, and arguments do not find one (of our types: capitals)."""
    parts = space.split("::")
    outer = ("::".join(parts[:count]) for count in range(1, len(parts) + 1))
    return any(not any(letter.isupper() for one in signature for letter in one) for each in outer for signature in exported[each, name])


def repeated(files, headers=None):
    """files, headers: {path: text}. Yields (path, line, name, path of the first definition)."""
    headers, known, of_folder, calls = headers or {}, {}, collections.defaultdict(set), collections.defaultdict(dict)
    handed = {path: set(HANDED.findall(text)) for path, text in files.items()}
    for path, text in files.items():
        of_folder[path.rpartition("/")[0]] |= included(path, {**headers, **files}, known)
        for space in {space for space, *_ in own_names(text)}:
            calls[path.rpartition("/")[0], space][path] = set(CALLED.findall(text))
    exported = collections.defaultdict(lambda: collections.defaultdict(set))  # header -> (namespace, name) -> signatures
    for path, text in headers.items():
        for spaces, name, signature, _ in names(text):
            if "" not in spaces:
                exported[path]["::".join(spaces), name].add(signature)
    types = {}  # of all headers
    for path, text in sorted(headers.items()):
        for spaces, name, signature, line in names(text):
            if signature == () and "" not in spaces:
                first = types.setdefault(("::".join(spaces), name), path)
                if first != path:
                    yield path, line, name, first
    seen = collections.defaultdict(dict)
    for path, text in sorted(files.items()):
        folder = path.rpartition("/")[0]
        for space, name, signature, line in own_names(text):
            first = seen[folder, space, name].setdefault(signature, path)
            if first == path and signature:
                first = next((other for overload, other in seen[folder, space, name].items() if overload and other != path and name in handed[path] | handed[other]), path)
            if first != path:
                yield path, line, name, first
            for header in sorted(of_folder[folder]):
                if signature in exported[header][space, name] or hidden(space, name, exported[header]) and any(
                        name in called and other != path and header in known[other] for other, called in calls[folder, space].items()):
                    yield path, line, name, header
