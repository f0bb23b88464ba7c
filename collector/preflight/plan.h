// SPDX-License-Identifier: Apache-2.0
// What is known about a job before it starts: from options, its command line, and its future
// environment.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddpdoctor::preflight {

using Environment = std::map<std::string, std::string>;

/// The program that starts the ranks.
enum class Launcher { kNone, kTorchrun, kAccelerate };

/// Absent means unknown.
struct Plan {
  std::vector<std::string> command;
  Launcher launcher = Launcher::kNone;
  std::string script;                  // the user's file; empty = unknown
  std::optional<int> ranks_here;       // number of processes to start on this machine
  bool ranks_by_gpu = false;           // one rank per GPU
  int nodes = 1;                       // number of machines of the job
  std::optional<int> node;             // index of this machine
  std::optional<int> workers;          // number of DataLoader workers per rank
  std::optional<double> batch_bytes;   // size of a batch that a worker passes on
  std::optional<std::string> address;  // rendezvous address of the ranks
  std::optional<int> port;             // 0 = the launcher chooses a free port
};

/// Reads the words of torchrun, accelerate launch or a plain python command; values already in
/// `given` are kept.
Plan plan_of(const std::vector<std::string>& command, const Environment& environment,
             const Plan& given);

}  // namespace ddpdoctor::preflight
