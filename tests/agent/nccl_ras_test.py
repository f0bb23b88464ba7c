# SPDX-License-Identifier: Apache-2.0
"""`ddpdoctor attach` to a job whose NCCL has RAS: a rank holds a socket that listens where RAS does,
and a server on the loopback answers like RAS. RAS's thread has no name of its own unless NCCL_SET_THREAD_NAME=1 (seen on an H200)."""
import json
import os
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

import pytest

TOOL = Path(os.environ.get("DDPDOCTOR", ""))
PROGRAM = TOOL / "ddpdoctor" if TOOL.is_dir() else TOOL
pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="$DDPDOCTOR is not the program")

RANK = """
import threading
print("ready", flush=True)
threading.Event().wait()
"""


def answer(counts):
    ranks = [{"rank": rank, "host": "a", "pid": 1, "cuda_dev": 0, "nvml_dev": 0,
              "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": count}} for rank, count in enumerate(counts)]
    return json.dumps({"nccl_version": "2.30.7", "communicators": [{"hash": "0x27a079b828ff1a75", "size": len(counts), "ranks": ranks, "missing_ranks": []}]})


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answers):
        self.answers, self.polls = answers, 0
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            said = line.decode().strip()
            if said == "VERBOSE STATUS":
                self.wfile.write(self.server.answers[min(self.server.polls, len(self.server.answers) - 1)].encode())
                self.server.polls += 1
                return
            self.wfile.write({"CLIENT PROTOCOL 2": b"SERVER PROTOCOL 2\n"}.get(said, b"OK\n"))


def attach(tmp_path, answers, inside=True):
    """`inside`: a rank holds the listening socket."""
    with Server(answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ranks = [subprocess.Popen([sys.executable, "-c", RANK], stdout=subprocess.PIPE, pass_fds=[server.fileno()] if inside and rank == 1 else [],
                                  env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT="29555",
                                           NCCL_RAS_ADDR=f"127.0.0.1:{server.server_address[1]}")) for rank in range(2)]
        try:
            for rank in ranks:
                assert rank.stdout.readline() == b"ready\n"
            subprocess.run([str(PROGRAM), "attach", str(ranks[0].pid), "-o", str(tmp_path / "report.json")], capture_output=True, timeout=60)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
            server.shutdown()
        return json.loads((tmp_path / "report.json").read_text()), server.polls


def test_asks_twice_and_no_more(tmp_path):
    report, polls = attach(tmp_path, [answer([7, 6])])
    assert polls == 2
    assert any("NCCL RAS, asked twice: the counts did not change" in text for text in report["coverage"]["observed"])
    assert any("27a079b828ff1a75" in group["id"] for group in report["groups"])


def test_takes_no_counts_that_move(tmp_path):
    report, polls = attach(tmp_path, [answer([7, 6]), answer([8, 8])])
    assert polls == 2
    assert any("the counts changed" in text for text in report["coverage"]["observed"])
    assert not any("27a079b828ff1a75" in group["id"] for group in report["groups"])


def test_does_not_ask_a_server_of_another_job(tmp_path):
    report, polls = attach(tmp_path, [answer([7, 6])], inside=False)
    assert polls == 0
    assert not any("RAS" in text for text in report["coverage"]["observed"] + report["coverage"]["warnings"])


def test_says_what_an_answer_that_cannot_be_read_is(tmp_path):
    report, _ = attach(tmp_path, ["{]"])
    assert any("NCCL RAS" in text for text in report["coverage"]["warnings"])
