// SPDX-License-Identifier: Apache-2.0
// A rank arrives late every time, but arrives: slow, not hung.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors::straggler {
namespace {

using graph::Standing;

// An arrival is late if it is this much behind the median of the others, in seconds and as a share
// of the time between two calls.
constexpr double kLateSeconds = 0.02;
constexpr double kLateShare = 0.2;

// Fewer calls may be chance.
constexpr int kFewestCalls = 8;
constexpr double kMostOften = 0.7;

// A rank that became slow lately is hidden by the calls before; few calls must agree more.
constexpr std::size_t kRecentCalls = 20;
constexpr double kNearlyAlways = 0.85;
constexpr double kMuchLater = 0.1;  // seconds, on average

struct Arrivals {
  std::map<model::Rank, int> last;       // how often each rank was last and late
  std::map<model::Rank, double> behind;  // seconds, summed
  int calls = 0;
};

/// One call of all ranks: when each made it, in order.
struct Call {
  std::vector<std::pair<double, model::Rank>> times;
  double step = 0;  // seconds since the call before
};

void count_call(const Call& call, Arrivals& arrivals) {
  const double median = call.times[(call.times.size() - 1) / 2].first;
  const auto& [latest, rank] = call.times.back();
  ++arrivals.calls;
  if (latest - median >= kLateSeconds && latest - median >= kLateShare * call.step) {
    ++arrivals.last[rank];
    arrivals.behind[rank] += latest - median;
  }
}

std::vector<Call> calls_of(const graph::Examination& examination, const graph::GroupView& view) {
  std::map<std::int64_t, std::vector<std::pair<double, model::Rank>>> by_sequence;
  const auto& ranks = examination.history.ranks(view.group.id);
  for (const auto& [rank, calls] : ranks) {
    for (const model::CollectiveCall* call : calls) {
      if (call->time) {
        by_sequence[call->sequence].emplace_back(*call->time, rank);
      }
    }
  }
  std::vector<Call> out;
  double before = 0;
  for (auto& [sequence, times] : by_sequence) {
    if (times.size() != ranks.size() || times.size() < 2) {
      continue;
    }
    std::sort(times.begin(), times.end());
    const double first = times.front().first;
    if (before > 0) {
      out.push_back({.times = std::move(times), .step = first - before});
    }
    before = first;
  }
  return out;
}

/// The rank that was last, and late, in most of these calls.
std::optional<model::Rank> mostly_last(const Arrivals& arrivals, double share) {
  for (const auto& [rank, times] : arrivals.last) {
    if (arrivals.calls >= kFewestCalls && times >= share * arrivals.calls) {
      return rank;
    }
  }
  return std::nullopt;
}

/// Of all recorded calls, or of the newest if the job continues.
std::optional<std::pair<model::Rank, Arrivals>> latecomer(const std::vector<Call>& calls,
                                                          model::Progress progress) {
  Arrivals all;
  for (const Call& call : calls) {
    count_call(call, all);
  }
  if (const auto rank = mostly_last(all, kMostOften)) {
    return std::pair(*rank, all);
  }
  if (calls.size() <= kRecentCalls || progress == model::Progress::kStill) {
    return std::nullopt;
  }
  Arrivals recent;
  for (const Call& call : std::span(calls).last(kRecentCalls)) {
    count_call(call, recent);
  }
  const auto rank = mostly_last(recent, kNearlyAlways);
  const bool much = rank && recent.behind.at(*rank) >= kMuchLater * recent.last.at(*rank);
  return much ? std::optional(std::pair(*rank, recent)) : std::nullopt;
}

/// "35 ms", "1.2 s".
std::string lag_said(double seconds) {
  constexpr double kShort = 0.1;
  return seconds < kShort ? fmt::format("{:.0f} ms", seconds * 1000) : base::duration(seconds);
}

std::optional<Finding> straggler_in(const graph::Examination& examination,
                                    const graph::GroupView& view) {
  const std::vector<Call> calls = calls_of(examination, view);
  const auto late = latecomer(calls, examination.job.progress);
  if (!late) {
    return std::nullopt;
  }
  const auto& [rank, arrivals] = *late;
  const int times = arrivals.last.at(rank);
  const bool lately = static_cast<std::size_t>(arrivals.calls) < calls.size();
  Finding finding;
  finding.kind = "straggler";
  finding.confidence = Confidence::kPossible;
  finding.culprits = {rank};
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary = fmt::format(
      "rank {} was last in {} of {}{} collectives of {}, on average {} after the others", rank,
      times, lately ? "the newest " : "", arrivals.calls,
      group_name(examination.job, view.group.id), lag_said(arrivals.behind.at(rank) / times));
  finding.fix = fmt::format(
      "Profile rank {}: data loading, share of the work, clocks and temperature of its GPU.", rank);
  if (const Standing* standing = examination.standing(rank);
      standing != nullptr && standing->user.known()) {
    finding.locations.push_back(location(*standing, fmt::format("rank {} is here", rank)));
  }
  return finding;
}

Findings detect(const graph::Examination& examination) {
  Findings findings;
  for (const graph::GroupView& view : examination.groups) {
    if (auto finding = straggler_in(examination, view)) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

// A pattern over many collectives is more informative than one observed phase.
constexpr int kHabit = kPlainFact + 1;

constexpr std::string_view kExplanation =
    R"(What you see: the job makes progress, but slower than it should; most ranks spend their time waiting in collectives.

Why: every collective finishes when the last rank has called it. One rank with a slow disk, a throttled GPU, larger batches or extra work sets the pace
of all.

How ddpdoctor knows: from the arrival times in the records: one rank is last, and late, in most of the collectives. The job is slow,
not hung.

Fix: profile that rank; give it less work, or move its extra work to all ranks or to a background process.

    $ py-spy record --pid PID_OF_THAT_RANK -o rank.svg
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "straggler",
                           .title = "One rank is late every time",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kHabit,
                           .effect = Effect::kSlow};

}  // namespace ddpdoctor::detectors::straggler
