# SPDX-License-Identifier: Apache-2.0
"""Which commands are run with ssh, srun, squeue, scontrol and kubectl, and what is reported if they fail: programs with these names are
first in PATH. They run the command here, on a rank that only sleeps."""
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
FAKES = {
    # The last word is a line for the login shell; the word before it is the host.
    "ssh": """for last; do :; done
host=; for word; do [ "$word" = "$last" ] || host=$word; done
case $host in
good*) echo "Welcome to $host"; printf 'no newline here'; exec sh -c "$last" ;;
deaf*) exec sh -c "$last" </dev/null ;;
gone*) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255 ;;
bare*) echo "sh: 1: $last: not found" >&2; exit 127 ;;
slow*) exec sleep 60 ;;
loud*) exec sh -c 'yes | head -c 300000000' ;;
liar*) session=$(echo "$last" | sed 's/.*--session \\([a-z]*\\).*/\\1/'); printf 'ddpdoctor-node/1 %s data AAAA\\nddpdoctor-node/1 %s end 3\\n' $session $session ;;
esac""",
    "squeue": """case $3 in
7) echo 'RUNNING|n[1-2]' ;;
8) echo 'PENDING|' ;;
9) printf 'RUNNING|n1\\nRUNNING|n2\\n' ;;
*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;;
esac""",
    "scontrol": "printf 'n1\\nn2\\n'",
    "srun": """while case $1 in -*) true ;; *) false ;; esac; do shift; done
exec "$@" """,
    "kubectl": """case "$*" in
*"get pods"*app=none*) ;;
*"get pods"*app=bad*) echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1 ;;
*"get pods"*) printf 'pod-0 Running\\npod-1 Pending\\n' ;;
*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac""",
    "ray": """case "$*" in
*10.0.0.9:6379*) echo 'Could not read session name from GCS' >&2; exit 1 ;;
*10.0.0.8:6379*) echo '[]' ;;
*) echo 'a warning [of Ray]' >&2
printf '[{"node_id": "a", "node_ip": "good1", "state": "ALIVE"}, {"node_id": "b", "node_ip": "good2", "state": "DEAD"},'
printf ' {"node_id": "c", "node_ip": "gone3", "state": "ALIVE"}, {"node_id": "d", "node_ip": "x;reboot", "state": "ALIVE"}]' ;;
esac""",
}


class Place:
    def __init__(self, folder):
        self.folder, self.log = folder, folder / "asked.log"
        self.mark = f"sleeper_{uuid.uuid4().hex}.py"
        for name, body in FAKES.items():
            (folder / name).write_text(f"#!/bin/sh\nprintf '%s\\n' '{name} '\"$*\" >>{self.log}\n{body}\n")
            (folder / name).chmod(0o755)
        (folder / "ddpdoctor").symlink_to(Path(TOOL).resolve())
        (folder / self.mark).write_text("import time\ntime.sleep(600)\n")

    def attach(self, *words, path=None, job=True):
        environment = {**os.environ, "PATH": path or f"{self.folder}:{os.environ['PATH']}", "NO_COLOR": "1"}
        chosen = ["--job", self.mark] if job else []
        done = subprocess.run([TOOL, "attach", *words, *chosen, "-o", str(self.folder / "r.json")], env=environment, capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL, cwd=self.folder)
        return done

    def report(self):
        return json.loads((self.folder / "r.json").read_text())

    def asked(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def place(tmp_path):
    here = Place(tmp_path)
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "10.9.9.9", "MASTER_PORT": "29999", "LOCAL_RANK": "0",
                   "LOCAL_WORLD_SIZE": "1", "SLURM_JOB_ID": "7"}
    rank = subprocess.Popen([sys.executable, str(tmp_path / here.mark)], env=environment, stdin=subprocess.DEVNULL)
    try:
        yield here
    finally:
        rank.kill()
        rank.wait()


def observed(report):
    return "\n".join(report["coverage"]["observed"])


def unobserved(report):
    return report["coverage"]["unobserved"]


def test_ssh_is_asked_for_no_password_and_its_greetings_are_passed_over(place):
    done = place.attach("--hosts", "good1")
    assert done.returncode in (0, 1), done.stderr
    assert "1 of 1 nodes answered" in observed(place.report())
    (line,) = place.asked()
    assert line.startswith("ssh -o BatchMode=yes ") and " capture --session " in line


def test_hosts_that_fail_are_named_with_the_reason_and_the_others_are_used(place):
    done = place.attach("--hosts", "good1,gone2,bare3,slow4,loud5,liar6", "--deadline", "6")
    assert done.returncode in (0, 1), done.stderr
    report = place.report()
    assert "1 of 6 nodes answered" in observed(report)
    said = {sentence.split(": ")[0]: sentence for sentence in unobserved(report)}
    assert "status 255" in said["gone2"] and "No route to host" in said["gone2"]
    assert "status 127" in said["bare3"]
    assert "no answer within" in said["slow4"]
    assert "loud5" in said
    assert "is not a capture" in said["liar6"]
    assert not [f for f in report["findings"] if f["confidence"] != "possible"]


def test_nobody_answers(place):
    done = place.attach("--hosts", "gone[1-9]")
    assert done.returncode == 3
    assert "no node gave an answer" in done.stderr
    done = place.attach("--hosts", "bare1")
    assert done.returncode == 3 and "--program PATH" in done.stderr


def test_a_launcher_without_an_input_stream_still_looks(place):
    done = place.attach("--hosts", "deaf1", "--deadline", "10")
    assert done.returncode in (0, 1), done.stderr
    assert "could not be compared" in observed(place.report())


def test_no_such_job_there(place):
    done = subprocess.run([TOOL, "attach", "--hosts", "good1", "--job", "nothing-has-this-name"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": f"{place.folder}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL)
    assert done.returncode == 3 and "no PyTorch job named by" in done.stderr


def test_slurm_is_asked_for_the_nodes_and_each_gets_a_step(place):
    done = place.attach("--slurm", "7")
    assert done.returncode in (0, 1), done.stderr
    steps = [line for line in place.asked() if line.startswith("srun ")]
    assert len(steps) == 2
    for node, step in zip(("n1", "n2"), sorted(steps)):
        assert "--jobid=7 --overlap --nodes=1 --ntasks=1" in step and f"--nodelist={node} " in step and "--variable SLURM_JOB_ID=7" in step


@pytest.mark.parametrize("words, said", [
    (["--slurm", "8"], "PENDING"),
    (["--slurm", "9"], "2 jobs of this array"),
    (["--slurm", "6"], "Invalid job id"),
    (["--kubernetes", "app=none"], "no pod that runs"),
    (["--kubernetes", "app=bad"], "Unauthorized"),
    (["--ray", "10.0.0.9:6379"], "Could not read session name"),
    (["--ray", "10.0.0.8:6379"], "lists no node that is alive"),
])
def test_why_there_are_no_nodes(place, words, said):
    done = place.attach(*words)
    assert done.returncode == 3 and said in done.stderr, done.stderr


def test_kubectl_enters_every_pod_that_runs(place):
    done = place.attach("--kubernetes", "app=train", "--namespace", "ml", "--container", "main")
    assert done.returncode in (0, 1), done.stderr
    got, ran = place.asked()
    assert got.startswith("kubectl --namespace ml get pods --selector app=train ")
    assert ran.startswith("kubectl --namespace ml exec --stdin pod-0 --container main -- ddpdoctor capture ")
    assert unobserved(place.report())[0] == "pod-1: the phase of this pod is Pending"


@pytest.mark.parametrize("address, words", [("auto", ""), ("10.0.0.1:6379", " --address 10.0.0.1:6379")])
def test_every_node_of_a_ray_cluster_that_lives_is_asked(place, address, words):
    done = place.attach("--ray", address)
    assert done.returncode in (0, 1), done.stderr
    listed, *asked = place.asked()
    assert listed == "ray list nodes --format json --limit 10000" + words
    assert sorted(line.split(" -T ")[1].split()[0] for line in asked) == ["gone3", "good1"]
    assert "1 of 2 nodes answered" in observed(place.report()) and "No route to host" in unobserved(place.report())[0]


def test_a_launcher_reaches_the_nodes_of_a_ray_cluster(place):
    done = place.attach("--ray", "auto", "--launcher", "echo {host} >>hosts.log; exec {command}")
    assert done.returncode in (0, 1), done.stderr
    assert [line.split()[0] for line in place.asked()] == ["ray"]


@pytest.mark.parametrize("words, said", [
    (["--hosts", "a;reboot"], "not the name of a host"),
    (["--hosts", "-oProxyCommand=x"], "not the name of a host"),
    (["--hosts", "n[1-"], "not a list of hosts"),
    (["--hosts", "a", "--launcher", "run {command}"], "lacks {host}"),
    (["--launcher", "run {host} {command}"], "no host was named"),
    (["--hosts", "a", "--slurm", "1"], "exclude each other"),
    (["--hosts", "a", "4711"], "each node finds its part"),
    (["--hosts", "a", "--deadline", "0"], "--deadline 0"),
    (["--slurm", "1; rm"], "not the id of a job"),
    (["--namespace", "x", "1"], "belong to --kubernetes"),
    (["--job", "x", "1"], "belong to --slurm"),
    (["--ray", "auto", "--hosts", "a"], "exclude each other"),
    ([], "--slurm, --hosts, --kubernetes or --ray"),
])
def test_words_that_make_no_sense(place, words, said):
    done = place.attach(*words, job=False)
    assert done.returncode in (2, 3) and said in done.stderr, done.stderr
    assert not place.asked()


def test_a_missing_launcher_is_one_sentence(place):
    done = place.attach("--hosts", "a", path="/nowhere")
    assert done.returncode == 3 and "ssh is not installed here, or not in PATH" in done.stderr
    done = place.attach("--slurm", "1", path="/nowhere")
    assert done.returncode == 3 and "squeue is not installed here" in done.stderr


def test_nothing_is_left_behind_on_a_node_whose_launcher_is_killed(place):
    done = place.attach("--hosts", "slow1", "--deadline", "1")
    assert done.returncode == 3
    time.sleep(0.5)
    assert subprocess.run(["pgrep", "-f", f"{place.folder}/ssh"], capture_output=True).returncode == 1


def test_help_names_the_ways_and_hides_the_nodes_part():
    said = subprocess.run([TOOL, "attach", "--help"], capture_output=True, text=True).stdout
    for word in ("--slurm", "--hosts", "--kubernetes", "--ray", "--launcher", "--deadline", "--program", "--job"):
        assert word in said
    assert "\n  capture " not in subprocess.run([TOOL, "--help"], capture_output=True, text=True).stdout
