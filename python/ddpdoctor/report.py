# SPDX-License-Identifier: Apache-2.0
"""A report of ddpdoctor as typed values. The fields are those of `ddpdoctor.report/1` (docs/report.schema.json).

A field that the report lacks is None or empty: unknown, never false. Ranks are global ranks. Times are in seconds."""
from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, TypeVar

T = TypeVar("T")
Ranks = Tuple[int, ...]


def _many(of: type) -> Any:
    return field(default=(), metadata={"many": of})



def _built(cls: Type[T], data: Mapping[str, Any]) -> T:
    """Builds the dataclass from JSON; unknown keys are ignored, because newer reports have more of them."""
    values: Dict[str, Any] = {}
    for item in fields(cls):  # type: ignore[arg-type]
        name = item.metadata.get("key", item.name)
        if name not in data:
            continue
        value = data[name]
        if "many" in item.metadata:
            value = tuple(_built(item.metadata["many"], each) for each in value)
        elif "one" in item.metadata:
            value = None if value is None else _built(item.metadata["one"], value)
        elif isinstance(value, list):
            value = tuple(value)
        values[item.name] = value
    return cls(**values)


@dataclass(frozen=True)
class Value:
    """The value of a user's expression on some ranks. `state`: known, derived, stale or unknown (`reason` says why)."""
    ranks: Ranks = ()
    expression: str = ""
    value: Optional[str] = None
    state: str = "unknown"
    reason: str = ""


@dataclass(frozen=True)
class Location:
    """A line of the user's program and the ranks at it. `line` counts from 1."""
    file: str = ""
    line: Optional[int] = None
    function: str = ""
    rank: Optional[int] = None
    ranks: Ranks = ()
    note: str = ""
    values: Tuple[Value, ...] = _many(Value)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line is not None else self.file


@dataclass(frozen=True)
class Evidence:
    """One fact that supports a finding."""
    text: str = ""
    rank: Optional[int] = None


@dataclass(frozen=True)
class Finding:
    """One cause. `kind` is a name of `ddpdoctor explain`; `confidence`: certain, likely or possible; the first location is the culprit's."""
    kind: str = ""
    confidence: str = ""
    summary: str = ""
    culprits: Ranks = ()
    waiting: Ranks = ()
    locations: Tuple[Location, ...] = _many(Location)
    evidence: Tuple[Evidence, ...] = _many(Evidence)
    fix: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """`language`: python or native. `module`: the ELF object of a native frame."""
    language: str = ""
    function: str = ""
    file: str = ""
    line: Optional[int] = None
    module: str = ""


@dataclass(frozen=True)
class Thread:
    """`frames` are innermost first; `gil`: whether the thread holds the GIL; `capture`: how the stack was read, or why there is none."""
    tid: int = 0
    name: str = ""
    state: str = ""
    gil: Optional[bool] = None
    waits_on: Optional[Mapping[str, Any]] = None
    capture: str = ""
    frames: Tuple[Frame, ...] = _many(Frame)


@dataclass(frozen=True)
class Process:
    """`role`: rank, launcher, dataloader-worker or other; `rank` of a worker is the rank for which it works."""
    role: str = ""
    pid: int = 0
    ppid: Optional[int] = None
    rank: Optional[int] = None
    host: str = ""
    state: str = ""
    command: Tuple[str, ...] = ()
    python_version: str = ""
    exit: Optional[Mapping[str, int]] = None
    problems: Tuple[str, ...] = ()
    threads: Tuple[Thread, ...] = _many(Thread)


@dataclass(frozen=True)
class Progress:
    """Collectives of one rank in a group, counted from the start of the job."""
    rank: int = 0
    enqueued: int = 0
    completed: int = 0


@dataclass(frozen=True)
class Group:
    """A process group. `ranks` are in group order, empty when unknown; `first_divergence` is that of the schema."""
    id: str = ""
    name: str = ""
    backend: str = ""
    ranks: Ranks = ()
    first_divergence: Optional[Mapping[str, Any]] = None
    progress: Tuple[Progress, ...] = _many(Progress)


@dataclass(frozen=True)
class Edge:
    """`source` waits for `target`: rank:N, pid:N, thread:TID, file:PATH or key:NAME."""
    source: str = field(default="", metadata={"key": "from"})
    target: str = field(default="", metadata={"key": "to"})
    why: str = ""


@dataclass(frozen=True)
class CollectiveWait:
    """Ranks `waiting` in a collective for the `missing` ones, complete; edges name only the first 16 targets of these."""
    waiting: Ranks = ()
    missing: Ranks = ()
    why: str = ""


@dataclass(frozen=True)
class WaitFor:
    """Which rank waits for which; each cycle is a deadlock, given as names of nodes."""
    nodes: Tuple[str, ...] = ()
    edges: Tuple[Edge, ...] = _many(Edge)
    cycles: Tuple[Any, ...] = ()
    collectives: Tuple[CollectiveWait, ...] = _many(CollectiveWait)


@dataclass(frozen=True)
class Job:
    """`seconds_without_progress` counts from the latest activity of any rank; `observed_at` is when the newest snapshot was taken (UTC, ISO
    8601)."""
    world_size: Optional[int] = None
    command: Tuple[str, ...] = ()
    hosts: Tuple[str, ...] = ()
    launcher_pid: Optional[int] = None
    seconds_without_progress: Optional[float] = None
    observed_at: Optional[str] = None


@dataclass(frozen=True)
class Coverage:
    """What was observed and what was not; `warnings` are sentences, and so are `closing`, about the machine rather than the job."""
    observed: Tuple[str, ...] = ()
    unobserved: Tuple[str, ...] = ()
    unobserved_ranks: Ranks = ()
    events_lost: int = 0
    warnings: Tuple[str, ...] = ()
    closing: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A diagnosis. `verdict`: hang, crash, leak, slow, running, finished or undetermined; `findings`: the most urgent one first.

    `text` is what the command line prints; `json` is the whole report as read."""
    verdict: str = "undetermined"
    job: Job = field(default_factory=Job, metadata={"one": Job})
    findings: Tuple[Finding, ...] = _many(Finding)
    groups: Tuple[Group, ...] = _many(Group)
    wait_for: WaitFor = field(default_factory=WaitFor, metadata={"one": WaitFor})
    processes: Tuple[Process, ...] = _many(Process)
    coverage: Coverage = field(default_factory=Coverage, metadata={"one": Coverage})
    text: str = field(default="", metadata={"key": "\0text"})
    json: Mapping[str, Any] = field(default_factory=dict, metadata={"key": "\0json"}, repr=False)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], text: str = "") -> "Report":
        """The report from a parsed report.json. Raises ValueError if this version cannot read it."""
        if data.get("schema") != "ddpdoctor.report/1":
            raise ValueError(f"not a ddpdoctor.report/1: schema is {data.get('schema')!r}")
        return _built(cls, {**data, "\0text": text, "\0json": dict(data)})

    @property
    def stack_diff(self) -> List[Mapping[str, Any]]:
        """Main threads of all ranks as a prefix tree, outermost frame first (schema: stack_node)."""
        return list(self.json.get("stack_diff", ()))

    @property
    def named(self) -> bool:
        """True if a hang was found whose cause is certain or likely."""
        return self.verdict == "hang" and any(f.confidence != "possible" and f.kind != "undetermined" for f in self.findings)

    def __str__(self) -> str:
        return self.text or "\n".join(f.summary for f in self.findings) or self.verdict
