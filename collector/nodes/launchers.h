// SPDX-License-Identifier: Apache-2.0
// How to run a program on each node of a job: a small table with one row per method. A row lists
// the nodes and gives the command line for one of them; the rest is common code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::nodes {

/// The user's options; exactly one of slurm, kubernetes, ray and hosts is set.
struct Target {
  std::string slurm;       // job id
  std::string kubernetes;  // label selector of pods
  std::string name_space;  // namespace of the pods; empty = kubectl's default
  std::string container;   // container in the pods; empty = the first
  std::string ray;         // address of the head of a cluster, or "auto"
  std::string hosts;       // host list
  std::string launcher;    // shell command with {host} and {command}; empty = ssh
  std::string program;     // path of ddpdoctor on the nodes; empty = the same as here
};

/// A node, and the command that runs `words` there.
struct NodeCommand {
  std::string node;
  std::vector<std::string> command;
};

/// The command for each node, and the nodes that cannot be asked.
struct Plan {
  std::vector<NodeCommand> nodes;
  std::vector<std::string> unreachable;  // sentences: "pod x: its phase is Pending"
};

/// Encodes any text as a word that no shell changes, and decodes it.
std::string as_word(std::string_view text);
std::string from_word(std::string_view word);

/// `words` are the arguments for ddpdoctor on a node. Asks Slurm, Kubernetes or Ray for the nodes.
base::Result<Plan> plan(const Target& target, std::vector<std::string> words);

}  // namespace ddpdoctor::nodes
