# SPDX-License-Identifier: Apache-2.0
"""Gives neutral names to everything in Python sources that is the user's: variables, functions, classes, parameters, attributes, modules.

A name is the user's when the sources bind it and no library can ask for it by name: names imported from libraries, names that a
library's base class or a built-in type has, names that occur as a string, and names that begin and end with two underscores stay.
Lines and columns of statements keep their line numbers; comments and strings stay as they are."""
import ast
import builtins
import functools
import importlib
import io
import keyword
import random
import re
import tokenize
import types
import warnings

FIXED = set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist) | {"self", "cls", "args", "kwargs"}


@functools.lru_cache(None)
def library_attributes():
    """Names that an object of a library may have: an attribute with such a name may be the library's."""
    found = set()
    for kind in (str, bytes, int, float, list, dict, set, tuple, type, types.FunctionType, types.GeneratorType, types.ModuleType, BaseException):
        found |= set(dir(kind))
    for module in ("torch", "torch.nn", "torch.distributed", "torch.optim", "torch.cuda", "torch.utils.data", "torch.multiprocessing", "os", "sys",
                   "time", "threading", "multiprocessing", "subprocess", "argparse", "pathlib", "collections", "random", "logging", "signal", "socket"):
        loaded = import_quietly(module)
        found |= set(dir(loaded)) if loaded else set()
    for path in ("torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer", "torch.distributed.ProcessGroup", "torch.distributed.Work", "torch.distributed.TCPStore",
                 "torch.nn.parallel.DistributedDataParallel", "torch.utils.data.DataLoader", "torch.utils.data.DistributedSampler", "threading.Thread",
                 "threading.Event", "multiprocessing.Process", "multiprocessing.queues.Queue", "multiprocessing.pool.Pool", "pathlib.Path", "argparse.ArgumentParser"):
        owner = resolve(path)
        found |= set(dir(owner)) if owner is not None else set()
    return found


@functools.lru_cache(None)
def import_quietly(name):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except Exception:  # a module that cannot be imported here adds no names
        return None


def resolve(path):
    """The object of a dotted path, or None."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        found = import_quietly(".".join(parts[:cut]))
        if found is None:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


class Binder(ast.NodeVisitor):
    """The names that one program binds, and those that libraries may look up."""

    def __init__(self, modules):
        self.modules = modules  # stems of the user's own modules
        self.names, self.attributes, self.kept, self.classes, self.functions = set(), set(), set(), set(), set()
        self.composed = []  # patterns of attributes' names that the program puts together
        self.imported = {}  # alias → dotted path

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.split(".")[0] in self.modules:
                continue
            self.imported[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            self.kept.add(alias.asname or alias.name.split(".")[0])

    def visit_ImportFrom(self, node):
        own = node.level > 0 or (node.module or "").split(".")[0] in self.modules
        for alias in node.names:
            if not own:
                self.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                self.kept.add(alias.asname or alias.name)
            elif alias.asname:
                self.names.add(alias.asname)

    def visit_FunctionDef(self, node, owner=None):
        (self.attributes if owner else self.names).add(node.name)
        self.functions.add(node.name)
        arguments = node.args
        for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *filter(None, [arguments.vararg, arguments.kwarg])]:
            self.names.add(one.arg)
            if owner and node.name in owner:  # a library calls this method and may pass its arguments by name
                self.kept.add(one.arg)
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self.names |= {one.arg for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
        self.generic_visit(node)

    def visit_ClassDef(self, node):
        self.names.add(node.name)
        self.classes.add(node.name)
        inherited = set(dir(object))
        for base in node.bases:
            path = ast.unparse(base)
            head, _, rest = path.partition(".")
            if head in self.imported:
                owner = resolve(self.imported[head] + (f".{rest}" if rest else ""))
                inherited |= set(dir(owner)) if owner is not None else set()
        self.kept |= {n for n in inherited}
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.visit_FunctionDef(statement, owner=inherited)
                for decorator in statement.decorator_list:
                    self.visit(decorator)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    if isinstance(target, ast.Name):
                        self.attributes.add(target.id)
                self.generic_visit(statement)
            else:
                self.visit(statement)

    def visit_Name(self, node):
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.names.add(node.id)

    def visit_Attribute(self, node):
        if isinstance(node.ctx, ast.Store):
            self.attributes.add(node.attr)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node):
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node):
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def visit_Call(self, node):
        callee = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if callee in ("SimpleNamespace", "Namespace"):
            self.attributes |= {k.arg for k in node.keywords if k.arg}
        elif callee not in self.functions | self.classes:
            self.later.append((callee, [k.arg for k in node.keywords if k.arg]))
        if callee in ("getattr", "hasattr", "setattr", "delattr") and len(node.args) > 1 and isinstance(node.args[1], ast.JoinedStr):
            parts = [re.escape(part.value) if isinstance(part, ast.Constant) else r"\w*" for part in node.args[1].values]
            self.composed.append(re.compile("".join(parts)))  # `getattr(self, f"do_{task}")`: such a name stays
        self.generic_visit(node)

    later = []

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            plain = node.value.lstrip("-").replace("-", "_")
            if plain.isidentifier():
                self.kept |= {plain, node.value}

    def visit_JoinedStr(self, node):
        for part in node.values:  # its texts are for people
            if isinstance(part, ast.FormattedValue):
                self.visit(part)


def fresh_names(count, seed):
    names = [f"n{number:03d}" for number in range(1, count + 1)]
    random.Random(seed).shuffle(names)
    return names


def plan(sources, seed):
    """Old name → neutral name for a program: {path: text}. Files that do not parse bind nothing."""
    modules = {path.rsplit("/", 1)[-1].removesuffix(".py") for path in sources}
    binder = Binder(modules)
    binder.later = []
    trees = []
    for text in sources.values():
        try:
            trees.append(ast.parse(text))
        except (SyntaxError, ValueError):
            continue
    for tree in trees:  # imports and definitions first: later visits need to know which names are the user's
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                binder.visit(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                binder.functions.add(node.name)
            elif isinstance(node, ast.ClassDef):
                binder.classes.add(node.name)
    for tree in trees:
        docs = {id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
                and n.body and isinstance(n.body[0], ast.Expr) and isinstance(n.body[0].value, ast.Constant)}
        for node in ast.walk(tree):
            if id(node) in docs:
                node.value = None
        binder.visit(tree)
    for callee, words in binder.later:  # keywords of a call into a library are the library's
        if callee not in binder.functions | binder.classes:
            binder.kept |= set(words)
    names = binder.names - binder.attributes
    users = {n for n in names if n not in FIXED | binder.kept} | {n for n in binder.attributes if n not in FIXED | binder.kept | library_attributes()}
    users = {n for n in users if not any(text.fullmatch(n) for text in binder.composed)}
    users = {n for n in users if not (n.startswith("__") and n.endswith("__")) and n != "_"}
    files = {m for m in modules if m.isidentifier() and m not in FIXED | {"__init__", "__main__"} | binder.kept}
    ordered = sorted(users | files)
    return dict(zip(ordered, fresh_names(len(ordered), seed))), files


def renamed_string(text, names):
    """The replacement fields of an f-string (one token before CPython 3.12) hold expressions."""
    if not re.match(r"(?i)(f|rf|fr)['\"]", text):
        return text
    return re.sub(r"\{[^{}]*\}", lambda field: re.sub(r"(?<![\w'\"])[A-Za-z_]\w*", lambda word: names.get(word.group(), word.group()), field.group()), text)


def rewritten(text, names):
    """`text` with every name of `names` replaced, line by line where it is; comments and plain strings stay."""
    lines = text.splitlines(keepends=True)
    edits = []
    try:
        before = ""
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string in names and not (before == "." and token.string in library_attributes()):
                edits.append((token.start, token.end, names[token.string]))
            elif token.type == tokenize.STRING and token.start[0] == token.end[0]:
                new = renamed_string(token.string, names)
                if new != token.string:
                    edits.append((token.start, token.end, new))
            before = token.string
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return re.sub(r"(?<![\w'\"])[A-Za-z_]\w*", lambda word: names.get(word.group(), word.group()), text)  # a part of a file
    for (row, begin), (_, end), new in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:begin] + new + line[end:]
    return "".join(lines)
