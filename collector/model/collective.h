// SPDX-License-Identifier: Apache-2.0
// One rank's side of one collective or point-to-point operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/rank_set.h"

namespace ddpdoctor::model {

/// A place in the user's source; line 0 = unknown.
struct CallSite {
  std::string file;
  int line = 0;
  std::string function;

  [[nodiscard]] bool known() const {
    return !file.empty();
  }
  friend bool operator==(const CallSite&, const CallSite&) = default;
  friend auto operator<=>(const CallSite&, const CallSite&) = default;
};

enum class CallState { kUnknown, kEnqueued, kStarted, kCompleted, kFailed };

/// Completed or failed; false also when nothing is known.
constexpr bool is_over(CallState state) {
  return state == CallState::kCompleted || state == CallState::kFailed;
}

/// PyTorch spelling of the operation ("all_reduce"), what was passed, and how far it came. Absent
/// is unknown.
struct CollectiveCall {
  Rank rank = 0;
  std::string group;          // ProcessGroup::id
  std::int64_t sequence = 0;  // from 1, per group; counted alike by every member
  bool point_to_point = false;
  std::string operation;
  std::optional<std::int64_t> count;
  std::optional<std::vector<std::int64_t>> shape;
  std::string dtype;      // "float32"; empty = unknown
  std::string reduce_op;  // "sum"; empty = unknown
  std::optional<Rank> root;
  std::optional<Rank> peer;
  std::optional<int> tag{};                                // of a message
  std::optional<std::vector<std::int64_t>> splits;         // what goes to each group rank
  std::optional<std::vector<std::int64_t>> output_splits;  // what is expected from each
  // Of an all_to_all whose splits are not known: elements that go to all peers together, and that
  // are expected from them. Of one rank these may differ, over all ranks they are the same.
  std::optional<std::int64_t> sent_elements{};
  std::optional<std::int64_t> expected_elements{};
  CallState state = CallState::kUnknown;
  std::optional<double> time;      // seconds, when it was enqueued
  std::optional<double> end_time;  // seconds, when it completed or failed
  CallSite call_site;              // the user's line, not torch's
  std::vector<CallSite>
      callers;  // the user's frames around it, innermost first (call_site is the first)
};

/// A process group of torch.distributed.
struct ProcessGroup {
  std::string id;
  std::string name;  // "default_pg" for the world
  std::string backend;
  std::vector<Rank> ranks;  // global ranks in group order; empty = unknown
};

}  // namespace ddpdoctor::model
