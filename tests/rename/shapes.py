# SPDX-License-Identifier: Apache-2.0
"""Rewrites the `if` statements of a program into other shapes with the same meaning; every line knows which line it was.

A condition moves into a helper, a property, another module or a dict of callables; an `if` that ends a function becomes an early return; one
that is the whole of a function becomes a decorator. Which shape an `if` gets is drawn by the seed."""
import ast
import random
import textwrap
from dataclasses import dataclass, field

GATE = """def {name}(asked):
    def around(call):
        def gated(*args, **kwargs):
            if asked(*args, **kwargs):
                return call(*args, **kwargs)
            return None
        return gated
    return around
"""


@dataclass
class Line:
    text: str
    origin: int | None  # the line it was; None = new


@dataclass
class Program:
    """One module being rewritten: its lines, and the modules to which conditions were moved."""
    lines: list
    modules: dict = field(default_factory=dict)
    count: int = 0

    def text(self):
        return "".join(line.text + "\n" for line in self.lines)

    def origin(self, line):
        """The line of the original from which `line` of the rewritten file comes; the nearest one above for new lines."""
        for at in range(min(line, len(self.lines)) - 1, -1, -1):
            if self.lines[at].origin is not None:
                return self.lines[at].origin
        return None


def free_names(condition):
    """Names a condition reads, in order; None when it binds some itself."""
    found = []
    for node in ast.walk(condition):
        if isinstance(node, (ast.NamedExpr, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await, ast.Yield)):
            return None
        if isinstance(node, ast.Name) and node.id not in found:
            found.append(node.id)
    return found


def first_line(node):
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


class Rewriter:
    def __init__(self, text, seed, stem):
        self.random = random.Random(seed)
        self.stem = stem
        lines = text.split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        self.program = Program([Line(line, number) for number, line in enumerate(lines, 1)])
        self.tree, self.pending = ast.parse(text), []
        self.built_in = set(dir(__builtins__ if not isinstance(__builtins__, dict) else type("b", (), __builtins__)))

    def eligible(self):
        """(`if`, its function, the top-level statement around it), from the last one up: edits below do not move those above."""
        found = []
        for top in self.tree.body:
            for function in ast.walk(top):
                if not isinstance(function, ast.FunctionDef):
                    continue
                for node in ast.walk(function):
                    if isinstance(node, ast.If) and node.lineno == node.test.lineno == node.test.end_lineno and node.body[0].lineno > node.lineno and self.innermost(node, top) is function:
                        if free_names(node.test) is not None and self.keyword(node) == "if":
                            found.append((node, function, top))
        return sorted(found, key=lambda one: -one[0].lineno)

    def keyword(self, node):
        text = self.program.lines[self.at(node.lineno)].text[node.col_offset:]
        return "if" if text.startswith("if ") else ""

    def innermost(self, node, top):
        best = None
        for function in ast.walk(top):
            if isinstance(function, ast.FunctionDef) and function.lineno <= node.lineno <= function.end_lineno and (best is None or function.lineno > best.lineno):
                best = function
        return best

    def rewrite(self):
        for node, function, top in self.eligible():
            shapes = [self.helper, self.property, self.module, self.table]
            if function.body[-1] is node and not node.orelse and not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(function)):
                shapes += [self.early_return] * 3
                if len(function.body) == 1 and function in self.tree.body and not function.decorator_list and self.only_parameters(node, function):
                    shapes += [self.decorator] * 3
            self.random.choice(shapes)(node, function, top)
        for number, text in sorted(self.pending, key=lambda one: -one[0]):
            at = self.at(number)
            while at and self.program.lines[at - 1].text.startswith("@gate_"):
                at -= 1
            self.program.lines[at:at] = [Line(line, None) for line in [*text.rstrip("\n").split("\n"), "", ""]]
        return self.program

    def new_name(self, word):
        self.program.count += 1
        return f"{word}_{self.stem}_{self.program.count}"

    def replace_condition(self, node, call):
        line = self.program.lines[self.at(node.lineno)]
        raw = line.text.encode()
        line.text = (raw[:node.test.col_offset] + call.encode() + raw[node.test.end_col_offset:]).decode()

    def insert_before(self, top, text):
        self.pending.append((first_line(top), text))

    def at(self, number):
        """The current line of line `number` of the original."""
        return next(index for index, line in enumerate(self.program.lines) if line.origin == number)

    def passed(self, node):
        return [n for n in free_names(node.test) if n not in self.built_in]

    def helper(self, node, function, top):
        name, passed = self.new_name("ask"), self.passed(node)
        condition = ast.unparse(node.test)
        parameters = ", ".join("one_self" if n == "self" else n for n in passed)
        self.replace_condition(node, f"{name}({', '.join(passed)})")
        self.insert_before(top, f"def {name}({parameters}):\n    return {self.without_self(condition, passed)}\n")

    def without_self(self, condition, passed):
        if "self" not in passed:
            return condition
        tree = ast.parse(condition, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id == "self":
                node.id = "one_self"
        return ast.unparse(tree)

    def property(self, node, function, top):
        name, passed = self.new_name("Ask"), self.passed(node)
        tree = ast.parse(ast.unparse(node.test), mode="eval")
        own = set(passed)
        for one in ast.walk(tree):
            if isinstance(one, ast.Name) and one.id in own:
                one.id = f"self.kept_{one.id}"
        stored = "".join(f"        self.kept_{n} = given_{n}\n" for n in passed) or "        pass\n"
        parameters = "".join(f", given_{n}" for n in passed)
        self.replace_condition(node, f"{name}({', '.join(passed)}).answer")
        self.insert_before(top, f"class {name}:\n    def __init__(self{parameters}):\n{stored}\n    @property\n    def answer(self):\n        return {ast.unparse(tree)}\n")

    def module(self, node, function, top):
        name, passed = self.new_name("ask"), self.passed(node)
        module = f"apart_{self.stem}"
        condition = self.without_self(ast.unparse(node.test), passed)
        parameters = ", ".join("one_self" if n == "self" else n for n in passed)
        known = self.program.modules.setdefault(f"{module}.py", "")
        self.program.modules[f"{module}.py"] = known + f"def {name}({parameters}):\n    return {condition}\n\n\n"
        self.replace_condition(node, f"{name}({', '.join(passed)})")
        self.insert_before(top, f"from {module} import {name}\n")

    def table(self, node, function, top):
        name, passed = self.new_name("WAYS"), self.passed(node)
        condition = self.without_self(ast.unparse(node.test), passed)
        parameters = ", ".join("one_self" if n == "self" else n for n in passed)
        self.replace_condition(node, f'{name}["first"]({", ".join(passed)})')
        self.insert_before(top, f'{name} = {{"first": lambda {parameters}: {condition}}}\n')

    def early_return(self, node, function, top):
        line = self.program.lines[self.at(node.lineno)]
        head = line.text[:node.col_offset]
        comment = line.text.encode()[node.test.end_col_offset:].decode().lstrip(":")
        line.text = f"{head}if not ({ast.unparse(node.test)}):{comment}"
        body = self.program.lines[self.at(node.lineno) + 1:self.at(node.end_lineno) + 1]
        cut = len(body[0].text) - len(body[0].text.lstrip()) - len(head)
        for one in body:
            one.text = one.text[cut:] if one.text[:cut].strip() == "" else one.text
        self.program.lines[self.at(node.lineno) + 1:self.at(node.lineno) + 1] = [Line(f"{head}    return", None)]

    def only_parameters(self, node, function):
        arguments = function.args
        if arguments.vararg or arguments.kwarg or arguments.defaults or arguments.kwonlyargs or arguments.posonlyargs:
            return False
        local = {one.arg for one in arguments.args}
        stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return not (set(free_names(node.test)) & (stored - local))

    def decorator(self, node, function, top):
        name = self.new_name("gate")
        parameters = ", ".join(one.arg for one in function.args.args)
        body = self.program.lines[self.at(node.lineno) + 1:self.at(node.end_lineno) + 1]
        for one in body:
            one.text = one.text[4:] if one.text[:4].strip() == "" else one.text
        mark = " # CULPRIT" if "# CULPRIT" in self.program.lines[self.at(node.lineno)].text else ""
        condition = ast.unparse(node.test)
        del self.program.lines[self.at(node.lineno)]
        at = self.at(function.lineno)
        self.program.lines[at:at] = [Line(f"@{name}(lambda {parameters}: {condition}){mark}", node.lineno)]
        self.insert_before(top, textwrap.dedent(GATE.format(name=name)))


def reshaped(text, seed, stem):
    """The program in other shapes; unchanged if it does not parse."""
    return Rewriter(text, seed, stem).rewrite()
