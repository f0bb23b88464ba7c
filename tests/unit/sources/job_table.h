// SPDX-License-Identifier: Apache-2.0
// Process tables, and job trees as short texts to compare.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::sources {

using Variables = std::map<std::string, std::string>;

/// A process table. Pids are far above those of the kernel, so that no real process is read.
class Table {
 public:
  Table& add(pid_t pid, pid_t parent, std::vector<std::string> command,
             Variables environment = {}) {
    ProcessRow row;
    row.pid = kBase + pid;
    row.ppid = parent == 0 ? 1 : kBase + parent;
    row.comm = command.empty() ? "python" : command.front().substr(command.front().rfind('/') + 1);
    row.state = 'S';
    row.command = std::move(command);
    row.start_ticks = static_cast<std::uint64_t>(pid);
    row.session = kBase;
    row.environment = std::move(environment);
    row.complete = true;
    rows_[row.pid] = row;
    last_ = row.pid;
    return *this;
  }
  /// Changes the process added last.
  ProcessRow& last() {
    return rows_.at(last_);
  }

  [[nodiscard]] JobTree find(pid_t pid, bool whole_tree = true) const {
    auto job = find_job(kBase + pid, whole_tree, rows_);
    EXPECT_TRUE(job.has_value());
    return job.value_or(JobTree{});
  }

  [[nodiscard]] const ProcessTable& rows() const {
    return rows_;
  }

  static constexpr pid_t kBase = 1 << 28;

 private:
  ProcessTable rows_;
  pid_t last_ = 0;
};

/// "10 launcher; 11 rank 0; 12 worker 0": pids of the table, roles and ranks in the tree's order.
inline std::string shape(const JobTree& job) {
  std::string text;
  for (const JobProcess& process : job.processes) {
    constexpr std::array<std::string_view, 6> kNames{"launcher", "rank", "worker",
                                                     "tracker",  "shm",  "other"};
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", process.row.pid - Table::kBase,
                        kNames.at(static_cast<std::size_t>(process.role)));
    text += process.rank           ? fmt::format(" {}", *process.rank)
            : process.guessed_rank ? fmt::format(" ?{}", *process.guessed_rank)
                                   : "";
  }
  return text;
}

inline Variables torchrun_rank(int rank, int world = 2, const std::string& port = "29500") {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(world)},
          {"GROUP_WORLD_SIZE", "1"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", port},
          {"TORCHELASTIC_RUN_ID", "none"}};
}

inline const std::vector<std::string> kTorchrun{"python", "/bin/torchrun", "train.py"};
inline const std::vector<std::string> kTrain{"python", "-u", "train.py"};
inline const std::vector<std::string> kSpawnMain{
    "python", "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)",
    "--multiprocessing-fork"};

}  // namespace ddpdoctor::sources
