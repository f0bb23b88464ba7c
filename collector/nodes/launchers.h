// SPDX-License-Identifier: Apache-2.0
// How a program is started on each node of a job: a small table, one row per way. A row lists the
// nodes and gives the command line for one of them; all else is the same for every row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::nodes {

/// What the user typed; exactly one of slurm, kubernetes and hosts is set.
struct Target {
  std::string slurm;       // job id
  std::string kubernetes;  // label selector of pods
  std::string name_space;  // of these pods; empty = kubectl's own
  std::string container;   // in these pods; empty = the first
  std::string hosts;       // a list
  std::string launcher;    // shell command with {host} and {command}; empty = ssh
  std::string program;     // ddpdoctor on the nodes; empty = where this one is
};

/// A node, and the command that runs `words` there.
struct NodeCommand {
  std::string node;
  std::vector<std::string> command;
};

/// What is to be run for each node, and what is known of nodes that cannot be asked.
struct Plan {
  std::vector<NodeCommand> nodes;
  std::vector<std::string> unreachable;  // sentences: "pod x: its phase is Pending"
};

/// Any text as a word that no shell changes, and back.
std::string as_word(std::string_view text);
std::string from_word(std::string_view word);

/// `words` are the arguments for ddpdoctor on a node. Asks Slurm or Kubernetes which nodes there
/// are.
base::Result<Plan> plan(const Target& target, std::vector<std::string> words);

}  // namespace ddpdoctor::nodes
