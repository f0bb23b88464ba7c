# SPDX-License-Identifier: Apache-2.0
"""The words of sentences that users read: string literals of the C++ sources against a list of words that are no standard English there.

Comments, code and single words are not checked."""
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
