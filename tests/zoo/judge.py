# SPDX-License-Identifier: Apache-2.0
"""Checks a report on a case: kind, ranks, line, confidence, waiting ranks, exit status. A healthy twin must have no finding."""
from pathlib import Path

HERE = Path(__file__).resolve().parent
SURE = ("likely", "certain")


def marked_lines(folder, case):
    """The lines that a script marks as the culprit's."""
    text = (HERE / folder / case.get("source", case["script"])).read_text().splitlines()
    return {number for number, line in enumerate(text, 1) if "# CULPRIT" in line or "// CULPRIT" in line}


def accepted_culprits(case):
    return [case["culprits"], *case.get("culprits_also", [])]


def opposite_answers(case):
    """Pairs of accepted answers that have no rank in common: one of the two is wrong, and the case does not say which."""
    answers = [set(answer) for answer in accepted_culprits(case)]
    return [(sorted(one), sorted(other)) for i, one in enumerate(answers) for other in answers[i + 1:] if one and other and not one & other]


def of_a_twin(report, status, mode):
    """A healthy job: nothing likely, and the exit status of a job without a finding."""
    findings = report.get("findings", [])
    wrong = [f"false alarm: {f['kind']} ({f['confidence']}): {f['summary']}" for f in findings if f.get("confidence") in SURE]
    if mode == "attach" and status is not None and status != (1 if findings else 0):
        wrong.append(f"attach ended with {status} and told of {len(findings)} findings")
    if mode == "run" and status not in (None, 0):
        wrong.append(f"run ended with {status}; the job by itself ends with 0")
    return wrong


def of_the_place(folder, case, first):
    place = (first.get("locations") or [{}])[0]
    lines = marked_lines(folder, case)
    script = case.get("location_file", Path(case["script"]).name)
    here = Path(place.get("file") or "").name == script and (place.get("line") in lines or place.get("function") in case.get("functions", []))
    return [] if here else [f"location {place.get('file')}:{place.get('line')} ({place.get('function')}) instead of {case['script']}:{sorted(lines)}"]


def of_a_fault(folder, case, report, status, mode):
    """A faulty job: the first finding names the cause, and is at least likely."""
    if not report.get("findings"):
        return [f"no finding (verdict {report.get('verdict')})"]
    first, wrong = report["findings"][0], []
    kinds = [case["kind"], *case.get("also", [])]
    if first["kind"] not in kinds:
        wrong.append(f"kind {first['kind']} instead of {kinds[0]}: {first['summary']}")
    sure = ("possible", *SURE) if mode == "stacks" else [case["confidence"]] if "confidence" in case else SURE  # one moment is never more
    if first.get("confidence") not in sure:
        wrong.append(f"{first.get('confidence')} instead of {' or '.join(sure)}: {first['summary']}")
    culprits, waiting = first.get("culprits", []), first.get("waiting", [])
    undecidable = mode == "stacks" and not culprits and first.get("confidence") == "possible"  # all ranks wait at one line; of_the_place judges the line
    if culprits not in accepted_culprits(case) and not undecidable:
        wrong.append(f"culprits {culprits} instead of {case['culprits']}")
    if "waiting" in case and waiting != case["waiting"] and not undecidable:
        wrong.append(f"waiting {waiting} instead of {case['waiting']}")
    if set(waiting) & set(culprits):
        wrong.append(f"ranks {sorted(set(waiting) & set(culprits))} are accused and said to wait")
    if mode == "attach" and status == 0:  # run ends as the job does
        wrong.append("exit status 0 beside a finding")
    return wrong + (of_the_place(folder, case, first) if case.get("location", True) else [])


def problems(folder, case, healthy, report, status=None, mode="attach"):
    """The errors of the report, as sentences; empty if it is correct. `status` None: unknown, or ended by us."""
    if healthy or case.get("healthy_only"):
        return of_a_twin(report, status, mode)
    return of_a_fault(folder, case, report, status, mode)
