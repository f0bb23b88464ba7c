// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/work_in_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/told_timeouts.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestBarName = 64;
constexpr std::size_t kLongestBarLine = 36;

/// The first fact of this kind that no waiting rank wrote. Without a prefix, rank 0 wrote it or a
/// rank that does not wait: it writes most.
const model::Fact* of_another(const model::JobModel& job, std::string_view kind,
                              const model::RankSet& waiting) {
  const auto facts = model::facts(job, kind);
  const auto found = std::find_if(facts.begin(), facts.end(), [&waiting](const model::Fact* fact) {
    return !waiting.contains(fact->rank.value_or(0));
  });
  return found == facts.end() ? nullptr : *found;
}

/// All ranks of the job but these, if the log tells how many there are.
model::RankSet others_than(const model::JobModel& job, const model::RankSet& ranks) {
  const auto told = model::facts(job, model::kToldWorld);
  const int world = told.size() == 1 ? static_cast<int>(told[0]->number("ranks").value_or(0)) : 0;
  model::RankSet out;
  for (model::Rank rank = 0; rank < world; ++rank) {
    if (!ranks.contains(rank)) {
      out.insert(rank);
    }
  }
  return out;
}

/// The only rank that is known not to have waited.
std::optional<model::Rank> sole_worker(const graph::Examination& examination,
                                       const model::RankSet& waiting) {
  const model::RankSet elsewhere = ranks_where(examination, is_elsewhere);
  const model::RankSet others = others_than(examination.job, waiting);
  return elsewhere.size() == 1 ? std::optional(elsewhere.front())
         : others.size() == 1  ? std::optional(others.front())
                               : std::nullopt;
}

/// Its last message before the timeout, or that of a writer without a rank; empty if none.
std::string last_message(const model::JobModel& job, model::Rank rank) {
  std::string nameless;
  for (const model::Fact* fact : model::facts(job, "last-message")) {
    if (fact->rank == rank) {
      return fact->text("text").value_or("");
    }
    nameless = fact->rank ? nameless : fact->text("text").value_or("");
  }
  return nameless;
}

bool in_new_group(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kNewGroup;
}

/// Those whose stacks show it, else those whose watchdogs name the call.
void find_waiting(const graph::Examination& examination, WorkInLog& out) {
  const model::JobModel& job = examination.job;
  out.waiting = waiting_ranks(examination);
  out.operation = "a collective";
  const graph::Standing* first =
      out.waiting.empty() ? nullptr : examination.standing(out.waiting.front());
  if (first != nullptr && (first->call || in_new_group(*first))) {
    out.operation = first->call ? call_name(job, *first->call) : std::string("new_group");
  }
  for (const model::CollectiveCall& call : job.collectives) {
    const bool open =
        call.state == model::CallState::kStarted || call.state == model::CallState::kEnqueued;
    if (first == nullptr && open) {
      out.operation = out.waiting.empty() ? call_name(job, call) : out.operation;
      out.waiting.insert(call.rank);
    }
  }
}

}  // namespace

std::optional<Finding> missing_in_new_group(const graph::Examination& examination) {
  const model::RankSet inside = ranks_where(examination, in_new_group);
  const model::RankSet elsewhere = ranks_where(examination, is_elsewhere);
  if (inside.empty() || elsewhere.empty() ||
      inside.size() + elsewhere.size() != examination.standings.size()) {
    return std::nullopt;
  }
  const graph::Standing* waits = examination.standing(inside.front());
  const graph::Standing* missing = examination.standing(elsewhere.front());
  Finding finding;
  finding.kind = "missing-rank";
  finding.confidence = Confidence::kLikely;
  finding.culprits = elsewhere;
  finding.waiting = inside;
  finding.summary = fmt::format("{} not called new_group; {}", ranks_do(elsewhere, "has", "have"),
                                whereabouts(examination.job, elsewhere, *missing));
  if (waits->user.known()) {
    finding.locations.push_back(
        location(waits->user, inside, waiting_here(examination.job, inside)));
  }
  finding.fix = fmt::format(
      "Run `ddpdoctor attach PID` on the node of {} during the wait: it shows what {} there.",
      said(elsewhere), ranks_do(elsewhere, "does", "do"));
  tell_work_in_log(examination, missing, finding);
  return finding;
}

bool is_elsewhere(const graph::Standing& standing) {
  const model::Thread* main =
      standing.process == nullptr ? nullptr : model::main_thread(*standing.process);
  return main != nullptr && main->frames.empty() && main->waits_on &&
         main->waits_on->kind == model::kElsewhere && !standing.process->exit;
}

std::optional<WorkInLog> work_in_log(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  const ToldTimeouts told = told_timeouts(job);
  WorkInLog out{
      .rank = {}, .waiting = told.ranks, .operation = told.operation, .what = {}, .evidence = {}};
  if (told.ranks.empty()) {
    find_waiting(examination, out);
  }
  if (out.waiting.empty()) {
    return std::nullopt;
  }
  const model::Fact* fact = of_another(job, "progress-bar", out.waiting);
  if (fact != nullptr) {
    const std::string name = fact->text("text").value_or("");
    const std::string count = fmt::format("{} of {}", fact->text("done").value_or("?"),
                                          fact->text("total").value_or("?"));
    out.what =
        fmt::format("{}{}{}", base::elide(name, kLongestBarName), name.empty() ? "" : ": ", count);
    out.evidence =
        fmt::format("log: the progress bar `{}` moved during the wait, to {}", name, count);
    out.seen = true;
  } else if ((fact = of_another(job, "progress-line", out.waiting)) != nullptr) {
    const std::string line = fact->text("text").value_or("");
    out.what = base::elide(line, kLongestBarLine);
    out.evidence = "log: after the first timeout: " + line;
    out.seen = true;
  } else if ((fact = of_another(job, "announced-work", out.waiting)) != nullptr) {
    const std::string line = fact->text("text").value_or("");
    out.what = base::elide(line, kLongestBarName);
    out.evidence = "log: before the timeout: " + line;
  }
  if (fact == nullptr) {
    return std::nullopt;
  }
  out.rank = fact->rank ? fact->rank : sole_worker(examination, out.waiting);
  return out.seen || out.rank ? std::optional(std::move(out)) : std::nullopt;
}

void tell_work_in_log(const graph::Examination& examination, const graph::Standing* standing,
                      Finding& finding) {
  if (standing == nullptr || !is_elsewhere(*standing)) {
    return;
  }
  const auto work = work_in_log(examination);
  if (work && work->rank == standing->rank) {
    finding.confidence = Confidence::kPossible;  // it may have been on its way
  } else if (const auto last = last_message(examination.job, standing->rank); !last.empty()) {
    finding.evidence.push_back(
        {.rank = standing->rank, .text = "log: the last message before the timeout: " + last});
  }
}

}  // namespace ddpdoctor::detectors
