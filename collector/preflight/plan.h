// SPDX-License-Identifier: Apache-2.0
// What is known of a job that has not started: from options, from its command line, from the
// environment it will get.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddpdoctor::preflight {

using Environment = std::map<std::string, std::string>;

/// The program that starts the ranks.
enum class Launcher { kNone, kTorchrun, kAccelerate };

/// Absent is unknown.
struct Plan {
  std::vector<std::string> command;
  Launcher launcher = Launcher::kNone;
  std::string script;                  // the user's file; empty = unknown
  std::optional<int> ranks_here;       // processes that start on this machine
  bool ranks_by_gpu = false;           // as many as there are GPUs
  int nodes = 1;                       // machines of the job
  std::optional<int> node;             // which of them this is
  std::optional<int> workers;          // DataLoader workers of each rank
  std::optional<double> batch_bytes;   // one batch as a worker hands it over
  std::optional<std::string> address;  // where the ranks meet
  std::optional<int> port;             // 0 = the launcher finds a free one
};

/// Reads the words of torchrun, accelerate launch or a plain python command; what `given` says
/// already is kept.
Plan plan_of(const std::vector<std::string>& command, const Environment& environment,
             const Plan& given);

}  // namespace ddpdoctor::preflight
