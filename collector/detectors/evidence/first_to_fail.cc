// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/first_to_fail.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/traceback_reader.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool is_of_launcher(const Traceback& one) {
  return one.of_launcher || is_consequence(one.exception, Message::kOfLauncher);
}

/// Its innermost line waits for a key that another rank sets.
bool waited_in_store(const Traceback& traceback) {
  return traceback.source.find("store.wait(") != std::string::npos ||
         traceback.source.find("store.get(") != std::string::npos;
}

/// The content of the logs if every exception is a consequence of another rank's failure.
struct Consequences {
  std::map<model::Rank, Traceback> of_ranks;  // the last traceback of each
  std::vector<Traceback> nameless;
};

/// Nothing if a rank raised for its own reasons, or may have: a traceback could not be read
/// completely.
std::optional<Consequences> consequences(const model::JobModel& job) {
  Consequences out;
  for (const LogStream& stream : log_streams(job)) {
    const std::vector<Traceback> all = read_tracebacks(stream);
    const bool begun = std::any_of(stream.begin(), stream.end(),
                                   [](const LogLine& line) { return begins_traceback(line.text); });
    if (begun && all.empty()) {
      return std::nullopt;
    }
    for (const Traceback& one : all) {
      if (is_of_launcher(one) || joins_processes(one)) {
        continue;
      }
      if (!is_consequence(one)) {
        return std::nullopt;
      }
      if (one.rank) {
        out.of_ranks.insert_or_assign(*one.rank, one);
      } else {
        out.nameless.push_back(one);
      }
    }
  }
  return out;
}

/// The rank that the launcher reports as the first to fail; nothing if it names none, or several
/// launchers do.
std::optional<model::Rank> told_first(const model::JobModel& job) {
  const auto told = model::facts(job, "first-failure");
  return told.size() == 1 ? told.front()->rank : std::nullopt;
}

}  // namespace

std::vector<FeltAnEnd> felt_an_end(const model::JobModel& job) {
  std::vector<FeltAnEnd> out;
  const auto add = [&out](const Traceback& one, std::optional<model::Rank> rank) {
    out.push_back({.rank = rank,
                   .lost_its_connection = is_consequence(one.exception, Message::kLostConnection),
                   .timed_out = is_consequence(one.exception, Message::kTimedOut),
                   .place = one.place,
                   .exception = one.exception,
                   .store_wait = waited_in_store(one) ? one.raiser : model::CallSite{},
                   .waits_for_children = one.waits_for_children});
  };
  if (const auto all = consequences(job)) {
    for (const auto& [rank, one] : all->of_ranks) {
      add(one, rank);
    }
    for (const Traceback& one : all->nameless) {
      add(one, std::nullopt);
    }
  }
  return out;
}

model::RankSet lost_their_connection(const std::vector<FeltAnEnd>& all) {
  model::RankSet out;
  for (const FeltAnEnd& one : all) {
    if (one.lost_its_connection && one.rank) {
      out.insert(*one.rank);
    }
  }
  return out;
}

std::vector<Failed> failed_without_word(const graph::Examination& examination) {
  constexpr int kOfAnException = 1;  // exit status of Python
  const model::JobModel& job = examination.job;
  std::vector<Failed> out;
  if (job.logs.empty() || !job.ended || !examination.history.empty()) {
    return out;
  }
  const auto said = consequences(job);
  const auto first = told_first(job);
  for (const model::Process* process :
       said ? processes(job) : std::vector<const model::Process*>{}) {
    const int status = process->exit ? process->exit->status.value_or(0) : 0;
    if (process->rank && status != 0 && !said->of_ranks.contains(*process->rank) &&
        (!first || first == process->rank)) {
      out.push_back({.rank = *process->rank,
                     .status = status,
                     .sure = (first || !said->of_ranks.empty()) &&
                             (status != kOfAnException || said->nameless.empty())});
    }
  }
  return out;
}

model::RankSet started_by_other_agents(const model::JobModel& job) {
  model::RankSet own;
  int world = 0;
  for (const model::Fact* fact : model::facts(job, "agent-ranks")) {
    own = fact->rank ? own.united({*fact->rank}) : own;
    world = std::max(world, static_cast<int>(fact->number("world").value_or(0)));
  }
  model::RankSet out;
  for (model::Rank rank = 0; rank < world && !own.empty(); ++rank) {
    if (!own.contains(rank)) {
      out.insert(rank);
    }
  }
  return out;
}

model::RankSet silent_ranks(const model::JobModel& job, const std::vector<FeltAnEnd>& felt) {
  model::RankSet out;
  for (const model::Log& log : job.logs) {
    if (log.rank) {
      out.insert(*log.rank);
    }
  }
  for (const FeltAnEnd& one : felt) {
    out = one.rank ? out.minus(model::RankSet{*one.rank}) : out;
  }
  for (const model::Fact* fact : model::facts(job, "error-file")) {
    out = fact->rank ? out.minus(model::RankSet{*fact->rank}) : out;
  }
  return out;
}

}  // namespace ddpdoctor::detectors
