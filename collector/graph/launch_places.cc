// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/launch_places.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/graph/launched_call.h"
#include "collector/model/operation_kinds.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

using Places = std::vector<model::CallSite>;  // innermost first

/// The user's lines of a thread, and whether what it called in the innermost one has returned.
struct Position {
  Places callers;
  bool here = false;
  auto operator<=>(const Position&) const = default;
};

/// DDP reduces gradients; fully sharded modules scatter them, and gather the parameters that were
/// freed after the forward. Other calls without a line may come from a helper thread.
bool is_made_in_backward(const model::CollectiveCall& call, bool shards) {
  const model::OperationKind kind = model::kind_of(call.operation);
  return (kind.reduces && !kind.has_root) || (shards && kind.gathers && !kind.has_root);
}

bool shards_parameters(const Calls& calls) {
  return std::any_of(calls.begin(), calls.end(), [](const model::CollectiveCall* call) {
    const model::OperationKind kind = model::kind_of(call->operation);
    return kind.reduces && kind.scatters && !call->call_site.known();
  });
}

class Placer {
 public:
  explicit Placer(const model::JobModel& job) : job_(job) {
    if (const model::Observation* now = model::latest(job)) {
      for (const model::Process& process : now->processes) {
        const model::Thread* main = model::main_thread(process);
        if (process.role == model::Role::kRank && process.rank && main != nullptr) {
          hosts_.emplace(*process.rank, position_of(*main));
        }
      }
    }
  }

  /// From the newest call to the oldest: a call without a line was made before the next known one.
  void place(model::Rank rank, const Calls& calls, History& history) {
    const auto host = hosts_.find(rank);
    Position next = host == hosts_.end() ? Position() : host->second;
    const bool shards = shards_parameters(calls);
    std::vector<std::pair<const model::CollectiveCall*, const Places*>> found;
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      if ((*call)->call_site.known()) {
        next = {.callers = callers_of(**call), .here = false};
      } else if (is_made_in_backward(**call, shards) && !next.callers.empty()) {
        const Places& places = backward_of(next);
        if (!places.empty()) {
          found.emplace_back(*call, &places);
        }
      } else {
        next = {};
      }
    }
    for (const auto& [call, places] : found) {
      history.place(*call, *places);
    }
  }

 private:
  static Position position_of(const model::Thread& thread) {
    Position position{.callers = {}, .here = waits_in_line_itself(thread)};
    for (const model::Frame* frame : model::user_frames(thread)) {
      position.callers.push_back(model::call_site(*frame));
    }
    return position;
  }

  const Places& backward_of(const Position& position) {
    auto [known, is_new] = backwards_.try_emplace(position);
    if (is_new) {
      known->second = backward_before(job_, position.callers, position.here);
    }
    return known->second;
  }

  const model::JobModel& job_;
  std::map<model::Rank, Position> hosts_;
  std::map<Position, Places> backwards_;
};

bool has_line(const model::CollectiveCall& call) {
  return call.call_site.known();
}

}  // namespace

void place_launches(const model::JobModel& job, History& history) {
  const auto& calls = job.collectives;
  if (job.sources.empty() || std::all_of(calls.begin(), calls.end(), has_line) ||
      std::none_of(calls.begin(), calls.end(), has_line)) {
    return;
  }
  Placer placer(job);
  for (const std::string& group : history.groups()) {
    for (const auto& [rank, lane] : history.ranks(group)) {
      placer.place(rank, lane, history);
    }
  }
}

}  // namespace ddpdoctor::graph
