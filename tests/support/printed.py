# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the sentences of a printed finding: the rules of tests/support/wording.py for text that was put together at run time.

A text is checked as a reader sees it, with its ranks, lines and calls; what others wrote (code in backquotes, lines of logs) is not ours."""
import re

import wording

QUOTED = re.compile(r"`[^`]*`")
OTHERS = re.compile(r"^(?:(?:ranks? [\d,\- and]+|process \d+): )?(?:log|kernel|stderr|launcher|log of [^:]*)(?: of [^:]*)?: ")
ONE = r"(?<![\w-])(?<!of )(?:only )?rank \d+"
MANY = r"(?<![\w-])(?<!of )(?:ranks \d[\d,\-]*(?: (?:and|step) \d+)?|\d[\d,]* ranks)"
SINGULAR = r"(?:is|has|was|waits|does|calls|sends|receives|holds|joins|runs)"
PLURAL = r"(?:are|have|were|wait|do|call|send|receive|hold|join|run)"
GRAMMAR = [
    (re.compile(rf"{MANY} {SINGULAR}\b"), "several ranks with the verb of one"),
    (re.compile(rf"{ONE} {PLURAL}\b"), "one rank with the verb of several"),
    (re.compile(r"\b(?:1 (?:ranks|processes|threads|calls|steps|workers|files))\b"), "one of many"),
    (re.compile(r"\b(\w+) \1\b(?! \d)", re.I), "a word twice"),
    (re.compile(r"\w\(s\)"), "write one form or the other"),
    (re.compile(r" [,;:]|,,|;;|(?<!\.)\.\.(?!\.)|  |\( | \)|\(\)(?<!\w\(\))"), "a gap in the sentence"),
    (re.compile(r"\b\d{3,} h\b|\b\d{5,} (?:s|min)\b"), "a duration that nobody can read"),
    (re.compile(r"\bat [\w./]+:\d+ in \w+"), "a line is written (train.py:16, step)"),
]
# A line of the table says who is there; these notes are about the line itself.
OF_THE_LINE = re.compile(r"^(?:decides|may decide|has as many|continues|skips|called in|called after)\b")
VERB = re.compile(r"^(?:is|are|was|were|has|holds|waits|wants|joins|fetches|lost|polls|reads|calls|keeps|wraps|returns|raised|used|started|stores)\b")


def words(sentence):
    """Code counts as two words, whatever its length."""
    return len(QUOTED.sub("code code", sentence).split())


def sentences(fix):
    return [one for one in re.split(r"(?<=[.;:!?]) ", QUOTED.sub("`the code`", fix)) if one]


def grammar(text):
    if OTHERS.match(text):
        return
    ours = QUOTED.sub("code", text)
    for pattern, what in GRAMMAR:
        for match in pattern.finditer(ours):
            yield f"{what}: {match[0].strip()!r} in {text!r}"
    for pattern, instead in wording.WORDS:
        for match in pattern.finditer(ours):
            yield f"{match[0].strip()!r} (write: {instead}) in {text!r}"


def problems(finding):
    """Each a sentence; of one finding of a report.json."""
    summary, fix = finding["summary"], finding.get("fix", "")
    if words(summary) > wording.LENGTHS["summary"]:
        yield f"{words(summary)} words in a summary: {summary!r}"
    for one in sentences(fix):
        if words(one) > wording.LENGTHS["fix"]:
            yield f"{words(one)} words in one sentence of a fix: {one!r}"
    if fix and not re.match(r"[A-Z`]|all_reduce|broadcast", fix):
        yield f"a fix begins with what to do: {fix!r}"
    notes = [place["note"] for place in finding.get("locations", []) if place.get("note")]
    for text in [summary, *sentences(fix), *notes, *(one["text"] for one in finding.get("evidence", []))]:
        yield from grammar(text)
    for note in notes:
        if VERB.match(note) and not OF_THE_LINE.match(note):
            yield f"who? {note!r}"
