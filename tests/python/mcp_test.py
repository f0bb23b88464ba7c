# SPDX-License-Identifier: Apache-2.0
"""ddpdoctor mcp, called by the SDK's own client: a real hung job, a file, a page, a machine."""
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT, environment
from ddpdoctor import shorten

CAPTURE = ROOT / "tests/golden/fork_with_held_lock__logging.json"
HUNG = """
import time
import torch, torch.distributed as dist

dist.init_process_group("gloo")
for step in range(4):
    dist.all_reduce(torch.ones(4))
print("READY", flush=True)
if dist.get_rank() == 1:
    dist.barrier()  # CULPRIT
dist.all_reduce(torch.ones(4))
time.sleep(1000)
"""


class Answer:
    """Attributes of a tool, with the names of the SDK's version 1 or 2."""

    def __init__(self, result):
        self.failed = result.is_error if hasattr(result, "is_error") else result.isError
        self.text = result.content[0].text
        self.data = result.structured_content if hasattr(result, "structured_content") else result.structuredContent


def with_server(folder, talk, command=None):
    """talk(session) beside a server that the C++ program starts."""
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import stdio_client

    async def session():
        words = command or [os.environ["DDPDOCTOR"], "mcp"]
        variables = environment(DDPDOCTOR_PYTHON=sys.executable)
        server = mcp.StdioServerParameters(command=words[0], args=words[1:], env=variables, cwd=str(folder))
        async with stdio_client(server) as (read, write), mcp.ClientSession(read, write) as client:
            await client.initialize()
            return await talk(client)

    return asyncio.run(asyncio.wait_for(session(), 120))


async def call(client, tool, **arguments):
    return Answer(await client.call_tool(tool, arguments))


def ready(process, ranks):
    end = time.monotonic() + 60
    while process.log.read_text().count("READY") < ranks:
        assert time.monotonic() < end and process.poll() is None, process.log.read_text()
        time.sleep(0.1)


def test_a_hung_job_is_attached_and_is_the_latest_report(launch, tmp_path):
    pytest.importorskip("mcp")
    job = launch(HUNG)
    ready(job, 2)

    async def talk(client):
        # Both ranks print before they wait: the first answer may be too early.
        end = time.monotonic() + 30
        answer = await call(client, "attach", pid=job.pid)
        while answer.data["verdict"] != "hang" and time.monotonic() < end:
            answer = await call(client, "attach", pid=job.pid)
        latest = (await client.read_resource("ddpdoctor://report/latest")).contents[0].text
        return answer, json.loads(latest), json.loads(Path(answer.data["whole"]).read_text())

    answer, latest, whole = with_server(tmp_path, talk)
    assert not answer.failed and json.loads(answer.text) == answer.data
    finding = answer.data["findings"][0]
    assert (finding["kind"], finding["culprits"], finding["waiting"]) == ("rank-conditional-collective", [1], [0])
    assert finding["locations"][0]["line"] == 1 + HUNG.split("\n").index("    dist.barrier()  # CULPRIT")
    assert finding["kind"] in answer.data["text"] and len(answer.text) <= shorten.USUAL
    assert latest["findings"] == whole["findings"] == answer.data["findings"]
    assert job.poll() is None  # the job was only read
    assert not Path(answer.data["whole"]).exists()  # ended with the server


def test_files_pages_kinds_and_the_machine(tmp_path):
    async def talk(client):
        tools = {tool.name for tool in (await client.list_tools()).tools}
        uris = {str(one.uri) for one in (await client.list_resources()).resources}
        before = json.loads((await client.read_resource("ddpdoctor://report/latest")).contents[0].text)
        kinds = (await client.read_resource("ddpdoctor://kinds")).contents[0].text
        return (tools, uris, before, kinds, await call(client, "report", paths=[str(CAPTURE)], max_chars=2000), await call(client, "explain", kind="dead-rank"),
                await call(client, "explain"), await call(client, "check", command=["torchrun", "--nproc-per-node=2", "/no/such/train.py"]))

    tools, uris, before, kinds, report, page, listed, machine = with_server(tmp_path, talk)
    assert tools == {"attach", "report", "explain", "check"}
    assert uris == {"ddpdoctor://report/latest", "ddpdoctor://kinds"}
    assert before["latest"] is None
    assert listed.text == kinds == subprocess.run([os.environ["DDPDOCTOR"], "explain"], capture_output=True, text=True, check=True).stdout
    assert report.data["findings"][0]["kind"] == "fork-with-held-lock" and len(report.text) <= 2000 and report.data["cut"]
    assert page.text.startswith("dead-rank: ")
    assert machine.data["schema"] == "ddpdoctor.check/1" and "/no/such/train.py" in machine.text


def test_what_cannot_be_answered_says_why(tmp_path):
    asked = {"no process": ("attach", {"pid": 2 ** 22 + 1}), "nowhere": ("report", {"paths": ["/nowhere.json"]}), "1 to 64": ("report", {"paths": []}),
             "dead-rank": ("explain", {"kind": "dead-ranks"}), "max_chars": ("report", {"paths": [str(CAPTURE)], "max_chars": 10}),
             "at most 300": ("attach", {"pid": 1, "timeout": 1e6}), "not a kind": ("explain", {"kind": "--help"})}

    async def talk(client):
        return {words: await call(client, tool, **arguments) for words, (tool, arguments) in asked.items()}

    for words, answer in with_server(tmp_path, talk).items():
        assert answer.failed and words in answer.text, (words, answer.text)


def test_files_of_the_job_are_not_imported(tmp_path):
    """The agent's host starts the server in the folder of the job."""
    for name in ("logging.py", "mcp.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the folder of the job')\n")

    async def talk(client):
        return await call(client, "explain", kind="dead-rank")

    assert with_server(tmp_path, talk).text.startswith("dead-rank: ")


def without(name, tmp_path):
    """An environment in which this package cannot be imported."""
    (tmp_path / "hidden" / name).mkdir(parents=True)
    (tmp_path / "hidden" / name / "__init__.py").write_text("raise ImportError('not installed')\n")
    variables = environment(DDPDOCTOR_PYTHON=sys.executable)
    return {**variables, "PYTHONPATH": os.pathsep.join([str(tmp_path / "hidden"), variables["PYTHONPATH"]])}


@pytest.mark.parametrize("words", [[os.environ["DDPDOCTOR"], "mcp"], [sys.executable, "-m", "ddpdoctor", "mcp"]])
def test_no_sdk_is_one_sentence(words, tmp_path):
    said = subprocess.run(words, env=without("mcp", tmp_path), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (said.returncode, said.stdout, said.stderr.count("\n")) == (3, "", 1), said
    assert "-m pip install 'mcp>=1.10'" in said.stderr


def test_no_package_and_no_python_are_one_sentence(tmp_path):
    words = [os.environ["DDPDOCTOR"], "mcp"]
    said = subprocess.run(words, env=without("ddpdoctor", tmp_path), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert said.returncode == 3 and "pip install 'ddpdoctor[mcp]'" in said.stderr and said.stderr.count("\n") == 1, said
    said = subprocess.run(words, env=environment(DDPDOCTOR_PYTHON="/no/python"), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert said.returncode == 3 and "/no/python" in said.stderr and "DDPDOCTOR_PYTHON" in said.stderr, said


@pytest.mark.parametrize("limit", [2_000, 5_000, 20_000, 1_000_000])
def test_a_report_is_cut_to_its_limit(limit):
    report = {"schema": "ddpdoctor.report/1", "verdict": "hang", "text": "x" * 9000, "stack_diff": [{"ranks": list(range(500))}],
              "findings": [{"kind": f"kind-{i}", "summary": "s" * 900, "fix": "f" * 900, "culprits": list(range(1024)), "evidence": [{"text": "e" * 500}] * 40,
                            "locations": [{"file": "/train.py", "line": 3}] * 40, "details": {"paths": ["p" * 90] * 90}} for i in range(9)],
              "wait_for": {"nodes": ["rank:1"] * 999, "edges": [{"from": "rank:1", "to": "rank:0", "why": "w"}] * 999, "cycles": []},
              "groups": [{"id": str(i), "first_divergence": {} if i == 30 else None, "progress": [{"rank": r} for r in range(99)]} for i in range(40)],
              "processes": [{"pid": 10 * i, "threads": [{"tid": 10 * i + t, "frames": [{"function": "f" * 50}] * 40} for t in range(9)]} for i in range(50)],
              "coverage": {"observed": ["o" * 90] * 50, "unobserved": [], "events_lost": 0, "warnings": []}}
    before = json.dumps(report)
    out = shorten.shortened(report, limit)
    assert len(json.dumps(out, indent=2)) <= limit
    assert out["findings"][0]["kind"] == "kind-0" and out["verdict"] == "hang"
    assert json.dumps(report) == before  # the caller's is not changed
    assert ("cut" in out) == (out != report)
    if limit == 5_000:
        assert out["cut"][-1] == "all but the first finding"
    if "groups" in out and len(out["groups"]) == 8:
        assert out["groups"][0]["id"] == "30"  # one that differs is kept
