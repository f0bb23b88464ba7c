// SPDX-License-Identifier: Apache-2.0
// One rank's side of one collective or point-to-point operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/rank_set.h"

namespace ddpdoctor::model {

/// A line in the user's source; line 0 = unknown.
struct CallSite {
  std::string file;
  int line = 0;
  std::string function;
  std::string module{};  // of compiled code whose file is unknown: "/usr/lib/libnccl.so.2"

  [[nodiscard]] bool known() const {
    return !file.empty();
  }
  friend bool operator==(const CallSite&, const CallSite&) = default;
  friend auto operator<=>(const CallSite&, const CallSite&) = default;
};

enum class CallState { kUnknown, kEnqueued, kStarted, kCompleted, kFailed };

/// Completed or failed; false also if the state is unknown.
constexpr bool is_over(CallState state) {
  return state == CallState::kCompleted || state == CallState::kFailed;
}

/// PyTorch's name of the operation ("all_reduce"), its arguments and its state. Absent means
/// unknown.
struct CollectiveCall {
  Rank rank = 0;
  std::string group;  // ProcessGroup::id
  // From 1, per group; every member uses the same number for the same call.
  std::int64_t sequence = 0;
  bool point_to_point = false;
  std::string operation;
  std::optional<std::int64_t> count;
  std::optional<std::vector<std::int64_t>> shape;
  std::string dtype;      // "float32"; empty = unknown
  std::string reduce_op;  // "sum"; empty = unknown
  std::optional<Rank> root;
  std::optional<Rank> peer;
  std::optional<int> tag{};                                // of a message
  std::optional<std::vector<std::int64_t>> splits;         // elements sent to each group rank
  std::optional<std::vector<std::int64_t>> output_splits;  // elements expected from each
  // For an all_to_all with unknown splits: elements sent to all peers together, and elements
  // expected from them. They may differ on one rank; the sums over all ranks are equal.
  std::optional<std::int64_t> sent_elements{};
  std::optional<std::int64_t> expected_elements{};
  CallState state = CallState::kUnknown;
  std::optional<bool> begun{};     // its GPU has reached it in its stream; nothing = unknown
  std::optional<double> time;      // seconds, time of enqueueing
  std::optional<double> end_time;  // seconds, time of completion or failure
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
