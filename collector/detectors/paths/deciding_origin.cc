// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/deciding_origin.h"

#include "collector/detectors/paths/source_blocks.h"

namespace ddpdoctor::detectors {

program::Origin origin_of(const model::JobModel& job, const Test& test) {
  const auto& lines = lines_of(job, test.where.file);
  if (test.condition.starts_with("@") || lines.empty()) {
    return {.source = program::Source::kUnknown};
  }
  return program::origin_of(test.condition, {.text = &lines, .line = test.where.line}, job.sources);
}

program::Origin origin_of(const model::JobModel& job, const Branch& branch) {
  return branch.catches
             ? program::Origin{.source = program::Source::kUnknown}
             : origin_of(job, Test{.where = branch.where, .condition = branch.condition});
}

bool is_each_ranks_own(program::Source source) {
  switch (source) {
    case program::Source::kFiles:
    case program::Source::kRandom:
    case program::Source::kClock:
    case program::Source::kCache:
    case program::Source::kException:
      return true;
    default:
      return false;
  }
}

std::string_view decider(program::Source source) {
  switch (source) {
    case program::Source::kUniform:
    case program::Source::kEnvironment:
    case program::Source::kUnknown:
    case program::Source::kRank:
      return {};
    case program::Source::kLength:
      return "amount of data";
    case program::Source::kData:
      return "data";
    case program::Source::kQueue:
      return "queue";
    case program::Source::kException:
      return "exception";
    case program::Source::kCache:
      return "cache";
    case program::Source::kFiles:
      return "file system";
    case program::Source::kRandom:
      return "random state";
    case program::Source::kClock:
      return "clock";
    case program::Source::kSignal:
      return "signal";
  }
  return {};
}

}  // namespace ddpdoctor::detectors
