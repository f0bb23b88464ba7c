// SPDX-License-Identifier: Apache-2.0
#include "collector/model/seen_elsewhere.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/coverage.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/questions.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::model {
namespace {

/// Nothing if the text has another form.
std::optional<RankSet> ranks_in(std::string_view text) {
  ListedRanks listed = listed_ranks(text);
  return listed.whole ? std::optional(RankSet(std::move(listed.ranks))) : std::nullopt;
}

/// The ranks named in "ranks 2-3: run on another machine", a sentence that ends with `why`.
std::optional<RankSet> ranks_named(std::string_view sentence, std::string_view why) {
  sentence.remove_suffix(why.size());
  sentence.remove_prefix(sentence.starts_with("ranks ")  ? 6
                         : sentence.starts_with("rank ") ? 5
                                                         : sentence.size());
  return ranks_in(sentence);
}

/// "ranks 2-3: run on another machine" without the ranks that another capture saw; empty if it saw
/// all of them.
std::string without_seen(const std::string& sentence, const RankSet& seen) {
  for (const std::string_view reason : kReasonsNotHere) {
    const std::string why = fmt::format(": {}", reason);
    if (!sentence.ends_with(why)) {
      continue;
    }
    const auto ranks = ranks_named(sentence, why);
    if (!ranks || ranks->common(seen).empty()) {
      return sentence;
    }
    const RankSet left = ranks->minus(seen);
    return left.empty() ? std::string() : left.said() + why;
  }
  return sentence;
}

/// "2 of 4 ranks run on this machine (0-1); the others …", although the others were seen.
bool speaks_of_one_machine(const std::string& warning, const RankSet& seen) {
  const std::size_t at = warning.find(sources::kRanksHere);
  const std::size_t end = at == std::string::npos ? at : warning.find(')', at);
  if (end == std::string::npos) {
    return false;
  }
  const std::size_t from = at + sources::kRanksHere.size();
  const auto here = ranks_in(std::string_view(warning).substr(from, end - from));
  return here && !seen.minus(*here).empty();
}

}  // namespace

RankSet ranks_answered_for(const JobModel& job) {
  RankSet elsewhere = job.coverage.unobserved_ranks;
  bool speaks_of_machines = false;
  for (const std::string& sentence : job.coverage.unobserved) {
    for (std::size_t i = 0; i < 2; ++i) {  // "runs on another machine", "run …"
      const std::string why = fmt::format(": {}", kReasonsNotHere[i]);
      const auto ranks = sentence.ends_with(why) ? ranks_named(sentence, why) : std::nullopt;
      speaks_of_machines = speaks_of_machines || ranks;
      elsewhere = ranks ? elsewhere.united(*ranks) : elsewhere;
    }
  }
  return job.world_size && speaks_of_machines ? all_ranks(job).minus(elsewhere) : RankSet();
}

void forget_seen_elsewhere(JobModel& job, const RankSet& answered) {
  std::vector<Rank> ranks = answered.values();
  for (const Observation& observation : job.observations) {
    for (const Process& process : observation.processes) {
      if (process.rank && process.role == Role::kRank && !process.threads.empty()) {
        ranks.push_back(*process.rank);
      }
    }
  }
  const RankSet seen(std::move(ranks));
  job.coverage.unobserved_ranks = job.coverage.unobserved_ranks.minus(seen);
  for (std::string& sentence : job.coverage.unobserved) {
    sentence = without_seen(sentence, seen);
  }
  base::drop_repeats(job.coverage.unobserved);
  std::erase_if(job.coverage.warnings, [&seen](const std::string& warning) {
    return speaks_of_one_machine(warning, seen);
  });
}

}  // namespace ddpdoctor::model
