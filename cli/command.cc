// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <array>

namespace ddpdoctor::cli {

std::span<const Command> commands() {
  static constexpr std::array<Command, 9> kCommands{{
      {.name = "attach", .summary = "look at a job that hangs now", .declare = declare_attach},
      {.name = "run",
       .summary = "run a job and say why it hangs, dies or computes nonsense",
       .declare = declare_run},
      {.name = "report",
       .summary = "read captures of a job and say what they show",
       .declare = declare_report},
      {.name = "watch",
       .summary = "a running job, live: who is where, who waits for whom",
       .declare = declare_watch},
      {.name = "check",
       .summary = "before the start: what here will break a job, and its fix",
       .declare = declare_check},
      {.name = "clean",
       .summary = "what dead jobs left here: lists it, asks, removes it",
       .declare = declare_clean},
      {.name = "explain",
       .summary = "what a kind of finding means, and its fix",
       .declare = declare_explain},
      {.name = "pyspy",
       .summary = "the stacks of a Python process, in the words of py-spy dump",
       .declare = declare_pyspy},
      {.name = "capture",
       .summary = "one node's part of attach --hosts",
       .declare = declare_capture,
       .hidden = true},
  }};
  return kCommands;
}

}  // namespace ddpdoctor::cli
