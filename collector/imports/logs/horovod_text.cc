// SPDX-License-Identifier: Apache-2.0
// The warnings of Horovod 0.9 to 0.28 (mpi_ops.cc, operations.cc, stall_inspector.cc). Horovod also
// warns of a rank that is only slow, so a warning counts only if the job wrote hardly anything else
// after it.
#include "collector/imports/logs/horovod_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/logs/c10d_reading.h"
#include "collector/imports/logs/horovod_stalls.h"
#include "collector/model/log_lines.h"
#include "collector/model/operations.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

using model::Rank;

/// The operation in "allreduce.conv1.weight" or "HorovodBroadcast_dense_kernel_0".
std::string operation_named(std::string_view tensor) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames = {
      {{"llreduce", "all_reduce"},
       {"llgather", "all_gather"},
       {"roadcast", "broadcast"},
       {"lltoall", "all_to_all"},
       {"educescatter", "reduce_scatter"},
       {"educeScatter", "reduce_scatter"},
       {"arrier", "barrier"}}};
  const auto* const found = std::find_if(kNames.begin(), kNames.end(), [tensor](const auto& row) {
    return tensor.find(row.first) != tensor.npos;
  });
  return found == kNames.end() ? std::string() : model::operation_of(found->second).name;
}

class StallReading {
 public:
  void read(const model::LogLine& line) {
    const std::string_view text = base::trim(line.text);
    largest_ = std::max(largest_, line.rank.value_or(0));
    if (tells_of_stall(text)) {
      newest_ = StalledTensors();
      after_ = 0;
      newest_.read(text);
      return;
    }
    if (text.empty() || newest_.read(text)) {
      return;
    }
    failed_ = failed_ || text.find("rror") != text.npos || text.find("stalled") != text.npos;
    ++after_;
  }

  /// The newest warning; null if the job continued after it.
  [[nodiscard]] const StalledTensors* stall() const {
    constexpr int kFew = 3;
    return newest_.empty() || (after_ > kFew && !failed_) ? nullptr : &newest_;
  }
  [[nodiscard]] Rank largest() const {
    return largest_;
  }

 private:
  StalledTensors newest_;
  Rank largest_ = 0;
  int after_ = 0;
  bool failed_ = false;
};

/// No rank of one side waits for another of the same side: each submitted other tensors.
void add_stalled_tensors(const std::vector<StalledSide>& sides, model::JobModel& job) {
  for (const StalledSide& side : sides) {
    for (const Rank rank : side.ranks) {
      job.facts.push_back({.rank = rank,
                           .pid = {},
                           .kind = std::string(model::kStalledTensors),
                           .fields = {{"submitted", side.submitted}, {"lacking", side.lacking}}});
    }
  }
}

void add_stalled_calls(const std::set<Rank>& missing, Rank last, const std::string& operation,
                       model::JobModel& job) {
  model::ProcessGroup group{.id = "0", .name = {}, .backend = "horovod", .ranks = {}};
  for (Rank rank = 0; rank <= last; ++rank) {
    model::CollectiveCall call;
    call.rank = rank;
    call.group = group.id;
    const bool behind = missing.contains(rank);
    call.sequence = behind ? 1 : 2;
    call.operation = behind ? std::string() : operation;
    call.state = behind ? model::CallState::kCompleted : model::CallState::kStarted;
    group.ranks.push_back(rank);
    job.collectives.push_back(std::move(call));
  }
  note_uncounted(group.id, job);
  job.groups.push_back(std::move(group));
}

}  // namespace

bool tells_of_stall(std::string_view line) {
  return line.find("submitted to be reduced, gathered or broadcasted by subset of ranks") !=
         line.npos;
}

void read_horovod_text(std::string_view log, model::JobModel& job) {
  if (!tells_of_stall(log) || !job.collectives.empty()) {
    return;
  }
  StallReading reading;
  for (const std::string_view raw : base::split(log, '\n')) {
    reading.read(model::read_log_line(raw.substr(0, 65'536)));
  }
  const StalledTensors* stall = reading.stall();
  if (stall == nullptr) {
    return;
  }
  // All ranks that are not missing have submitted it; at least one such rank exists.
  const Rank last = std::max({reading.largest(), stall->largest(), 1});
  const auto opposed = stall->opposed(last, reading.largest() == last);
  if (!opposed.empty()) {
    add_stalled_tensors(opposed, job);
    return;
  }
  const std::set<Rank> missing = stall->missing(std::max(reading.largest(), stall->largest()));
  if (!missing.empty()) {
    add_stalled_calls(missing, last, operation_named(stall->first()), job);
  }
}

}  // namespace ddpdoctor::imports
