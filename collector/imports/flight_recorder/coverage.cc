// SPDX-License-Identifier: Apache-2.0
// What dumps show about themselves: which ranks are present, and whether the job made progress.
#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "collector/imports/flight_recorder/job.h"

namespace ddpdoctor::imports {
namespace {

using model::CallState;
using model::JobModel;
using model::Rank;

/// Seconds; a job that enqueued a call within this time before its dump was written may be healthy.
constexpr double kQuietSeconds = 1;

model::RankSet ranks_without(const std::vector<Dump>& dumps, Rank world_size) {
  std::vector<Rank> out;
  std::size_t next = 0;
  for (Rank rank = 0; rank < world_size; ++rank) {
    while (next < dumps.size() && dumps[next].rank < rank) {
      ++next;
    }
    if (next == dumps.size() || dumps[next].rank != rank) {
      out.push_back(rank);
    }
  }
  return model::RankSet(std::move(out));
}

}  // namespace

void judge_progress(const std::vector<Dump>& dumps, JobModel& job) {
  double quiet = std::numeric_limits<double>::infinity();
  bool waits = false;
  for (const Dump& dump : dumps) {
    waits = waits || std::any_of(dump.calls.begin(), dump.calls.end(),
                                 [](const DumpedCall& call) { return call.open(); });
    const double age = dump.written - static_cast<double>(dump.newest_ns) * kNanosecond;
    if (dump.newest_ns > 0 && dump.written > 0 && age >= 0) {
      quiet = std::min(quiet, age);
    }
  }
  if (waits && quiet >= kQuietSeconds) {
    job.progress = model::Progress::kStill;
  }
}

void tell_coverage(const std::vector<Dump>& dumps, JobModel& job) {
  std::vector<Rank> whole;
  std::vector<Rank> cut;
  std::vector<Rank> disputed;
  std::set<std::string> versions;
  std::size_t calls = 0;
  std::size_t left_out = 0;
  for (const Dump& dump : dumps) {
    (dump.disputed ? disputed : dump.cut ? cut : whole).push_back(dump.rank);
    if (dump.disputed) {
      continue;
    }
    calls += dump.calls.size();
    left_out += dump.left_out;
    versions.insert(dump.version.empty() ? "unknown" : dump.version);
  }
  job.coverage.observed.push_back(fmt::format("flight-recorder dumps of {}: {} calls, version {}",
                                              model::RankSet(whole).said(), calls,
                                              versions.empty() ? "unknown" : *versions.begin()));
  if (versions.size() > 1) {
    job.coverage.warnings.emplace_back(
        "the dumps are of different versions: not all ranks ran the same torch");
  }
  if (left_out > 0) {
    job.coverage.warnings.push_back(fmt::format(
        "{} entries of the dumps were left out: without number, or of a group without name",
        left_out));
  }
  const model::RankSet without = ranks_without(dumps, job.world_size.value_or(0));
  if (!without.empty()) {
    job.coverage.unobserved.push_back(without.said() + ": no dump was given");
  }
  if (!cut.empty()) {
    job.coverage.unobserved.push_back(model::RankSet(cut).said() +
                                      ": the dump is cut, its newest calls are missing");
  }
  if (!disputed.empty()) {
    job.coverage.unobserved.push_back(model::RankSet(disputed).said() +
                                      ": dumps of several processes have this number");
  }
  job.coverage.unobserved_ranks =
      without.united(model::RankSet(std::move(cut))).united(model::RankSet(std::move(disputed)));
}

}  // namespace ddpdoctor::imports
