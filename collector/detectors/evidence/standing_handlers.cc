// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/standing_handlers.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/exceptions_in_hand.h"
#include "collector/detectors/evidence/handlers.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/exceptions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestHandlerLine = 240;
constexpr std::size_t kLongestNote = 80;

using Path = std::vector<model::CallSite>;

/// The different call chains of the ranks: thousands of ranks are in a few of them.
class CallChains {
 public:
  explicit CallChains(const graph::Examination& examination) : job_(examination.job) {
    for (const graph::Standing& standing : examination.standings) {
      ++ranks_at_[standing.callers];
    }
  }

  /// Some other rank is not in the handler that this call chain is in: only this rank has raised.
  bool alone_in_handler(const Path& here) {
    const auto [known, added] = alone_.try_emplace(here, false);
    if (added) {
      known->second = std::any_of(ranks_at_.begin(), ranks_at_.end(), [&](const auto& there) {
        const bool others = !there.first.empty() && (there.second > 1 || there.first != here);
        return others && in_handler(job_, here, there.first);
      });
    }
    return known->second;
  }

 private:
  const model::JobModel& job_;
  std::map<Path, int> ranks_at_;
  std::map<Path, bool> alone_;
};

/// An exception passes through the `with` of a generator, into which contextlib throws it.
bool passes_through_with(const model::JobModel& job, const graph::Standing& standing) {
  return standing.thread != nullptr && throws_into_generator(job, *standing.thread);
}

/// Reports the exception itself, which is more specific than the block that handles it.
void tell_exception(const ExceptionInHand& hand, Suspect& suspect) {
  const std::string exception = base::elide(base::printable(hand.exception), kLongestHandlerLine);
  suspect.evidence += fmt::format(", for {}", exception);
  if (hand.raised.known()) {
    suspect.place = hand.raised;
    suspect.note = "raised here: " + base::elide(exception, kLongestNote);
    suspect.deed = kRaised;
  }
}

/// It sleeps in an except clause before another try: the next attempt may succeed.
bool tries_again(const model::JobModel& job, const graph::Standing& standing) {
  return sleeps_by_choice(*standing.thread) &&
         std::any_of(standing.callers.begin(), standing.callers.end(), [&](const auto& site) {
           return program::retry_loop(lines_of(job, site.file), site.line).has_value();
         });
}

/// An operation that has failed for so long may still succeed, but counts as a hang.
Confidence of_trying_again(const model::JobModel& job, Confidence still) {
  constexpr double kLong = 60;  // seconds without progress of the job
  return job.seconds_without_progress.value_or(0) >= kLong ? at_most(still, Confidence::kLikely)
                                                           : Confidence::kPossible;
}

std::optional<Suspect> handling(const graph::Examination& examination,
                                const graph::Standing& standing, CallChains& chains) {
  if (standing.process == nullptr || standing.thread == nullptr || !alive(*standing.process) ||
      own_user_frame(*standing.thread) == nullptr || standing.moved ||
      (standing.on_cpu && !standing.waits_for_ranks())) {
    return std::nullopt;
  }
  const model::Frame* const hook = in_exception_hook(*standing.thread);
  const auto hand = handled_by(examination.job, standing);
  const bool by_source =
      chains.alone_in_handler(standing.callers) || passes_through_with(examination.job, standing);
  if (!by_source && hook == nullptr && !(hand && hand->in_users_hand)) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *standing.process, standing.thread);
  suspect.rank = standing.rank;
  suspect.note = fmt::format("rank {} is handling an exception here", standing.rank);
  const auto handler =
      std::find_if(standing.callers.begin(), standing.callers.end(),
                   [&](const auto& site) { return in_handler(examination.job, {site}, {}); });
  suspect.evidence =
      fmt::format("rank {} is in an except or finally block ({})", standing.rank,
                  place(handler == standing.callers.end() ? standing.callers.front() : *handler));
  if (hook != nullptr && !by_source) {
    suspect.place = model::call_site(*hook);
    suspect.evidence = fmt::format("rank {} is in {}(), which runs only after an exception",
                                   standing.rank, base::printable(hook->function));
  }
  if (hand && (hand->in_users_hand || passes_through_with(examination.job, standing))) {
    tell_exception(*hand, suspect);
  }
  if (tries_again(examination.job, standing)) {
    suspect.deed = kTriesAgain;
  }
  return suspect;
}

}  // namespace

std::vector<Suspect> stand_in_handler(const graph::Examination& examination) {
  std::vector<Suspect> out;
  const auto still = stuck(examination);
  CallChains chains(examination);
  for (const graph::Standing& standing : examination.standings) {
    auto suspect = still ? handling(examination, standing, chains) : std::nullopt;
    if (suspect) {
      suspect->confidence =
          suspect->deed == kTriesAgain ? of_trying_again(examination.job, *still) : *still;
      out.push_back(std::move(*suspect));
    }
  }
  // If all ranks are in one handler, this is how the program works, not one rank's problem.
  return out.size() < examination.standings.size() ? out : std::vector<Suspect>{};
}

std::vector<Suspect> failed_on_their_way_out(const graph::Examination& examination) {
  std::vector<Suspect> out;
  const auto still = stuck(examination);
  for (const graph::Standing& standing : examination.standings) {
    const auto failed = still ? failed_with(examination.job, standing) : std::nullopt;
    if (!failed || is_consequence(failed->exception) || !alive(*standing.process) ||
        waiting_ranks(examination).minus(model::RankSet{standing.rank}).empty()) {
      continue;
    }
    Suspect suspect = suspect_in(examination, *standing.process, standing.thread);
    suspect.rank = standing.rank;
    suspect.confidence = *still == Confidence::kLikely ? Confidence::kCertain : *still;
    suspect.note = fmt::format("rank {} waits here after the exception", standing.rank);
    suspect.evidence =
        failed->in_task
            ? fmt::format(
                  "the event loop of rank {} has nothing to do since a task of it ended "
                  "unseen",
                  standing.rank)
            : fmt::format("rank {} failed and ends", standing.rank);
    tell_exception(*failed, suspect);
    out.push_back(std::move(suspect));
  }
  return out;
}

}  // namespace ddpdoctor::detectors
