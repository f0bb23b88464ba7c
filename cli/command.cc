// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <array>

namespace ddpdoctor::cli {
namespace {

constexpr std::string_view kObserved =
    "0 no finding, 1 findings, 2 wrong command line, 3 nothing could be observed (stderr says why)";

constexpr std::array<Command, 13> kCommands{{
    {.name = "attach",
     .summary = "attach to a running job and report why it hangs",
     .declare = declare_attach,
     .examples = R"(  ddpdoctor attach 4711                 the whole job around process 4711
  ddpdoctor 4711                        the same
  ddpdoctor attach --slurm 815          a job on many nodes; also --hosts a,b,c
  ddpdoctor attach 4711 -o report.html  also write a page to share
  ddpdoctor attach 4711 -o job.ddpd     also write a recording; read it with ddpdoctor report)",
     .statuses = kObserved},
    {.name = "run",
     .summary = "run a job; report why it hangs, crashes or computes wrong results",
     .declare = declare_run,
     .examples = R"(  ddpdoctor run -- torchrun --nproc-per-node 8 train.py
  ddpdoctor run --on-hang kill --report-dir out -- torchrun --nproc-per-node 8 train.py
  ddpdoctor run --ci -- pytest tests/distributed)",
     .statuses = "that of the job; 124 ddpdoctor ended a job that hung, 126 or 127 the job could "
                 "not be started, 2 wrong command line"},
    {.name = "report",
     .summary = "read recordings, dumps and logs of a job; report what they show",
     .declare = declare_report,
     .examples = R"(  ddpdoctor report job.ddpd
  ddpdoctor report dump_of_rank_*.txt   what py-spy or gdb printed
  ddpdoctor report nccl_trace_rank_*    flight recorder dumps of torch
  ddpdoctor report slurm-4711.out       the log of a job)",
     .statuses = kObserved},
    {.name = "watch",
     .summary = "show a running job live: where each rank is, who waits for whom",
     .declare = declare_watch,
     .examples = R"(  ddpdoctor watch                       the job that `ddpdoctor run` started
  ddpdoctor watch 4711 --once           one snapshot, as text)",
     .statuses = "0 the job was seen, 2 wrong command line, 3 nothing could be observed"},
    {.name = "collect",
     .summary = "read all nodes of a job that run --nats; report why it hangs",
     .declare = declare_collect,
     .examples =
         R"(  ddpdoctor collect --nats nats://head:4222              the only job there, until it ends
  ddpdoctor collect --nats nats://head:4222 --once       one snapshot of all nodes now
  ddpdoctor collect --nats nats://head:4222 --job slurm-815 -o report.html)",
     .statuses = kObserved},
    {.name = "check",
     .summary = "before the start: report what on this machine will break a job",
     .declare = declare_check,
     .examples = R"(  ddpdoctor check -- torchrun --nproc-per-node 8 train.py
  ddpdoctor check --ranks 8 --workers 4)",
     .statuses = "0 nothing will break the job, 1 something will, 2 wrong command line"},
    {.name = "clean",
     .summary = "list what dead jobs left on this machine, ask, remove it",
     .declare = declare_clean,
     .examples = R"(  ddpdoctor clean                       list it and ask
  ddpdoctor clean --yes                 remove it without a question)",
     .statuses = "0 nothing of this user is left, 1 something is, 2 wrong command line, 3 the list "
                 "could not be printed"},
    {.name = "explain",
     .summary = "explain a kind of finding and its fix",
     .declare = declare_explain,
     .examples = R"(  ddpdoctor explain                     all kinds
  ddpdoctor explain unused-parameters)",
     .statuses = "0 printed, 2 unknown kind"},
    {.name = "pyspy",
     .summary = "print the stacks of a Python process in the format of py-spy dump",
     .declare = declare_pyspy,
     .examples = "  ddpdoctor pyspy dump --pid 4711",
     .statuses = "0 printed, 1 the process could not be read, 2 wrong command line"},
    {.name = "mcp",
     .summary = "serve attach, report, explain and check to a coding agent, over stdio",
     .declare = declare_mcp,
     .examples = R"(  pip install 'ddpdoctor[mcp]'          what it needs
  ddpdoctor mcp                         started by the agent's host, as docs/agents.md shows)",
     .statuses =
         "0 the agent closed its end, 2 wrong command line, 3 no Python with the package and "
         "the SDK (stderr says what to install)"},
    {.name = "capture",
     .summary = "one node's part of attach --hosts",
     .declare = declare_capture,
     .examples = "  ddpdoctor attach --hosts a,b          starts it on each node",
     .statuses = kObserved,
     .hidden = true},
    {.name = "completion",
     .summary = "print the completion script of a shell",
     .declare = declare_completion,
     .examples = R"(  source <(ddpdoctor completion bash)
  ddpdoctor completion fish > ~/.config/fish/completions/ddpdoctor.fish)",
     .statuses = "0 printed, 2 wrong command line",
     .hidden = true},
    {.name = "man",
     .summary = "print a manual page",
     .declare = declare_man,
     .examples = "  ddpdoctor man attach | man -l -",
     .statuses = "0 printed, 2 wrong command line",
     .hidden = true},
}};

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

}  // namespace ddpdoctor::cli
