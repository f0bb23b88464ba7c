// SPDX-License-Identifier: Apache-2.0
// The steps of NCCL's setup in which ranks stopped, from facts "nccl-setup", and the settings that
// avoid them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// One GPU of one process: its last line in the setup.
struct SetupEnd {
  std::optional<model::Rank> rank;
  std::string host;
  pid_t pid = 0;
  std::optional<std::int64_t> gpu;
  std::string step;  // as in imports/logs/nccl_setup.cc
  std::string text;
  bool lazy = false;  // its setup is complete; it connects for its first collective

  [[nodiscard]] bool is_same_gpu(const SetupEnd& other) const {
    return host == other.host && pid == other.pid && gpu == other.gpu;
  }
};

/// A communicator of which some ranks did not finish the setup.
struct NcclSetup {
  std::vector<SetupEnd> ends;      // of ranks that did not finish
  std::vector<SetupEnd> finished;  // of ranks that did
  std::int64_t size = 0;           // ranks of the communicator; 0 if unknown
  std::set<std::string> via;       // "P2P/CUMEM", "NET/IB"
};

struct SetupStep {
  std::string_view name;
  std::string_view what;  // "they connect their channels"
};

/// Nothing if all finished, a call failed, or fewer than two ranks are known.
std::optional<NcclSetup> unfinished_setup(const model::JobModel& job);

/// By pid, the ranks of the processes that set up the largest communicator of the logs.
std::map<pid_t, model::Rank> ranks_by_setup(const model::JobModel& job);

SetupStep step_named(const SetupEnd& end);
std::string fix_of_step(const SetupStep& step, const std::set<std::string>& via);

bool at_one_step(const NcclSetup& setup);

/// All ranks finished the setup and connect for their first collective.
bool is_lazy(const NcclSetup& setup);

/// The only rank at an earlier step than all the others, if all ranks are known.
std::optional<SetupEnd> one_behind(const NcclSetup& setup);

/// A line below NCCL's last one shows that the job was interrupted or waited in vain.
bool was_given_up(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
