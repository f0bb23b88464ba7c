# SPDX-License-Identifier: Apache-2.0
"""Words that are not standard English where our sentences had them: in string literals that users read, and in comments of C and C++ sources.

Code and single words are not checked."""
import re

FOLDERS = ("collector/detectors", "collector/preflight", "collector/model", "collector/imports", "collector/sources", "viewer", "cli")

# What is wrong wherever a sentence of ours has it, and what to write.
WORDS = [
    (r"\b(?:nobody|somebody|everybody)\b", "no rank, a thread, every process"),
    (r"\b(?:stands?|stood) (?:in|at|still|here|there)\b", "is in, is waiting in, hangs"),
    (r"\b(?:comes?|came) (?:to|there)\b", "reach, call"),
    (r"\bwent (?:round|to|different)\b", "ran, called, diverged"),
    (r"\b(?:passed by|leads? past|led past)\b", "skipped"),
    (r"\ban unknown place\b", "line unknown"),
    (r"\bsomewhere else\b", "say where, or that it is unknown and why"),
    (r"\bfind out\b", "the command or the check itself"),
    (r"(?:^|\. )(?:look at|see whether|make sure|let)\b", "a verb that the reader can do: check, run, move, pass"),
    (r"\bfor lack of\b|\bon account of\b", "because of"),
    (r"\b(?:they|ranks) part\b|\bparting\b", "diverge"),
    (r"\b(?:is|was|are) gone\b", "has exited"),
    (r"\blives? on\b", "is still running"),
    (r"\b(?:one|two|second|another) looks?\b", "snapshot"),
    (r"\bis no pid\b|\bis nothing that\b", "is not a, unrecognized"),
    (r"\b(?:come|comes|came) back\b", "finish, return, appear again"),
    (r"(?<!there )\b(?:is|are|was|were) no (?!longer\b)", "is not a"),
    (r"\b(?:is|are|was|were) told\b|\btells? (?!a\b)", "reported, given, shows"),
    (r"\bmeets?\b|\bmet\b", "pairs with, reaches"),
    (r"\balike\b", "same as, equal"),
    (r"\b(?:goes|go|went) on\b", "continue"),
]
WORDS = [(re.compile(pattern, re.I), instead) for pattern, instead in WORDS]

# The same for comments, where more words have a second meaning that is right.
COMMENT_WORDS = [
    (r"\b(?:somebody|everybody|whoever)\b", "no rank, a thread, every process, any"),
    (r"\bwhom\b", "which"),
    (r"\b(?:stands?|stood) (?:in|at|on|still|here|there|for ever)\b", "is in, is blocked in"),
    (r"\b(?:comes?|came) (?:to|there|back|round)\b", "reach, call, return"),
    (r"\bfor ever\b", "forever"),
    (r"\btells? of\b|\btold as\b", "reports, shows, given as"),
    (r"\bfor (?:want|lack) of\b", "without, because there is no"),
    (r"\b(?:in|at) hand\b", "known, being handled, available"),
    (r"\b(?:a|one|two|second|another|next|earlier|newer|older) looks?\b|\bbetween (?:the |two )?looks\b", "snapshot"),
    (r"\bway out\b", "exit of the loop"),
    (r"\b(?:goes|went|going) on\b", "continue"),
    (r"\b(?:goes|gone|went|go) round\b", "runs an iteration"),
    (r"\banew\b", "again"),
    (r"\bof which nothing\b", "name the actor"),
    (r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b)", "is not a"),
    (r"\balike\b", "equal, the same"),
    (r"\bpart(?:ed|ings?)\b", "diverged, divergence"),
    (r"\bformer (?:life|lives)\b", "previous attempt"),
    (r"\bof its own accord\b", "by itself"),
    (r"\bturns out\b|\bc(?:o|a)mes? out\b", "is, has the result"),
    (r"\bhas the say\b", "decides"),
]
COMMENT_WORDS = [(re.compile(pattern, re.I), instead) for pattern, instead in COMMENT_WORDS]
LENGTHS = {"summary": 25, "fix": 20}  # words; of a fix: in one clause
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
RAW = re.compile(r'R"\((.*?)\)"', re.S)


def literals(text):
    """(line, text) of each literal; adjacent ones are one sentence."""
    for match in RAW.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]
    text = RAW.sub(lambda match: '""' + "\n" * match[0].count("\n"), text)
    text = re.sub(r"//[^\n]*", "", re.sub(r"#include[^\n]*", "", text)) if '"' in text else text
    at = 0
    while match := LITERAL.search(text, at):
        begin, said, at = match.start(), match[1], match.end()
        while following := re.compile(r'\s*"((?:[^"\\\n]|\\.)*)"').match(text, at):
            said, at = said + following[1], following.end()
        yield text.count("\n", 0, begin) + 1, said


def long_sentences(text):
    """(line, words, limit) of summaries and fixes that are written in one place and too long; a place in braces is one word."""
    for what, limit in LENGTHS.items():
        for match in re.finditer(rf"\b{what} \+?=\s", text):
            end = text.find(";\n", match.end())
            for line, said in literals(text[match.end():end if end > 0 else None]):
                clauses = [said] if what == "summary" else re.split(r"(?<=[.;:!?]) ", said)
                for words in (len(clause.split()) for clause in clauses):
                    if words > limit:
                        yield text.count("\n", 0, match.end()) + line, words, limit


def problems(text):
    for line, said in literals(text):
        if said.count(" ") < 2:
            continue
        prose = re.sub(r"(?m)^    .*$|`[^`]*`|\\\"[^\"]*\\\"", "", said)  # not the reader's code, nor what others print
        for pattern, instead in WORDS:
            for match in pattern.finditer(prose):
                yield line, match[0].strip(), instead


def comments(text):
    """(line, text) of each comment; adjacent lines are one."""
    begin, said = 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        whole = re.match(r"\s*///?<? ?(.*)", line)
        if whole:
            begin, said = begin if said else number, said + [whole[1]]
            continue
        if said:
            yield begin, " ".join(said)
            said = []
        behind = re.search(r"[;,{}()\w]  +// (.*)", line)
        if behind:
            yield number, behind[1]


def comment_problems(text):
    for line, said in comments(text):
        prose = re.sub(r"NOLINT.*|`[^`]*`|\"[^\"]*\"", "", said)
        for pattern, instead in COMMENT_WORDS:
            for match in pattern.finditer(prose):
                yield line, match[0].strip(), instead
