// SPDX-License-Identifier: Apache-2.0
// The format is that of Horovod 0.13 to 0.28 (operations.cc, stall_inspector.cc). Horovod also
// warns of a rank that is only slow, so a warning counts only if the job wrote hardly anything else
// after it.
#include "collector/imports/logs/horovod_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/c10d_reading.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"
#include "collector/model/operations.h"

namespace ddpdoctor::imports {
namespace {

using model::Rank;

constexpr std::size_t kMostHorovodRanks = 70'000;

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

struct Stall {
  std::set<Rank> missing;
  std::string operation;  // of the first stalled tensor

  void add(std::string_view ranks, std::string_view tensor) {
    for (const std::string_view part : base::split(ranks, ',')) {
      const auto rank = number_of(base::trim(part), kMaxRank);
      if (rank && missing.size() < kMostHorovodRanks) {
        missing.insert(static_cast<Rank>(*rank));
      }
    }
    operation = operation.empty() ? operation_named(tensor) : operation;
  }
  /// Before 0.13: "allreduce.a [ready ranks: 0, 1, 3]". The ranks between them are missing.
  void add_all_but(std::string_view ranks, std::string_view tensor) {
    Stall ready;
    ready.add(ranks, tensor);
    for (Rank rank = 0; !ready.missing.empty() && rank < *ready.missing.rbegin(); ++rank) {
      if (!ready.missing.contains(rank)) {
        missing.insert(rank);
      }
    }
    last_ready = ready.missing.empty() ? 0 : *ready.missing.rbegin();
    operation = operation.empty() ? ready.operation : operation;
  }
  Rank last_ready = 0;
};

class StallReading {
 public:
  void read(const model::LogLine& line) {
    const std::string_view text = base::trim(line.text);
    largest_ = std::max(largest_, line.rank.value_or(0));
    if (tells_of_stall(text)) {
      newest_ = Stall();
      after_ = 0;
      if (const std::size_t ops = text.find("Stalled ops: "); ops != text.npos) {
        lists(text.substr(ops + 13));
      }
      return;
    }
    if (text.empty() || lists(text)) {
      return;
    }
    failed_ = failed_ || text.find("rror") != text.npos || text.find("stalled") != text.npos;
    ++after_;
  }

  /// The newest warning; null if the job continued after it.
  [[nodiscard]] const Stall* stall() const {
    constexpr int kFew = 3;
    return newest_.missing.empty() || (after_ > kFew && !failed_) ? nullptr : &newest_;
  }
  [[nodiscard]] Rank largest() const {
    return largest_;
  }

 private:
  /// The line lists missing ranks: "3: [allreduce.a, allreduce.b ...]", in older versions
  /// "allreduce.a [missing ranks: 0, 3]".
  bool lists(std::string_view text) {
    if (const auto old = between(text, "[missing ranks: ", "]")) {  // also after "Stalled ops:"
      newest_.add(*old, text);
      return true;
    }
    if (const auto ready = between(text, "[ready ranks: ", "]")) {
      newest_.add_all_but(*ready, text);
      return true;
    }
    if (text.starts_with("Missing ranks") || text.starts_with("Stalled ops:")) {
      return true;
    }
    std::string_view rest = text;
    const auto rank = take_number(rest, kMaxRank);
    const bool one = rank && take_prefix(rest, ": [");
    if (one && newest_.missing.size() < kMostHorovodRanks) {
      newest_.add(text.substr(0, text.find(':')), rest);
    }
    return one;
  }

  Stall newest_;
  Rank largest_ = 0;
  int after_ = 0;
  bool failed_ = false;
};

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
  const Stall* stall = reading.stall();
  if (stall == nullptr) {
    return;
  }
  model::ProcessGroup group{.id = "0", .name = {}, .backend = "horovod", .ranks = {}};
  // All ranks that are not missing have submitted it; at least one such rank exists.
  const Rank last = std::max({reading.largest(), *stall->missing.rbegin(), stall->last_ready, 1});
  for (Rank rank = 0; rank <= last; ++rank) {
    model::CollectiveCall call;
    call.rank = rank;
    call.group = group.id;
    const bool missing = stall->missing.contains(rank);
    call.sequence = missing ? 1 : 2;
    call.operation = missing ? std::string() : stall->operation;
    call.state = missing ? model::CallState::kCompleted : model::CallState::kStarted;
    group.ranks.push_back(rank);
    job.collectives.push_back(std::move(call));
  }
  note_uncounted(group.id, job);
  job.groups.push_back(std::move(group));
}

}  // namespace ddpdoctor::imports
