// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/ended_by_mpi.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/mpi_words.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/disagreed.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kAbort = "MPI_Abort";
constexpr std::size_t kLongestLine = 240;

/// One rank's end, as seen by its agent, else as reported by MPI.
struct End {
  model::Rank rank = 0;
  std::string call = {};
  std::optional<std::int64_t> status = {};
  double time = std::numeric_limits<double>::infinity();
  model::CallSite place = {};
  std::string line = {};  // MPI's own message
};

bool is_abort(const End& end) {
  return end.call == kAbort;
}

/// The newest call of this rank, among those in progress or among all; nullptr if there is none.
const model::CollectiveCall* newest_call(const model::JobModel& job, model::Rank rank, bool open) {
  const model::CollectiveCall* newest = nullptr;
  for (const model::CollectiveCall& call : job.collectives) {
    const bool later = newest == nullptr || call.time.value_or(0) >= newest->time.value_or(0);
    newest = call.rank == rank && !(open && model::is_over(call.state)) && later ? &call : newest;
  }
  return newest;
}

End recorded_end(const model::Fact& fact, const std::string& call) {
  End end{.rank = *fact.rank, .call = call};
  end.status = static_cast<std::int64_t>(fact.number("status").value_or(0));
  end.time = fact.number("time").value_or(0);
  end.place = {.file = fact.text("file").value_or(""),
               .line = static_cast<int>(fact.number("line").value_or(0)),
               .function = fact.text("function").value_or("")};
  return end;
}

/// MPI's message names no line: the line of the rank's newest call is the closest.
End told_end(const model::JobModel& job, const MpiEnd& told) {
  End end{.rank = told.rank, .call = told.call, .line = told.line};
  end.status = told.code;
  const bool failed = told.call != kAbort;
  if (const auto* call = newest_call(job, told.rank, failed); call != nullptr) {
    end.place = call->call_site;
  }
  return end;
}

/// Ordered by time.
std::vector<End> ends_in_mpi(const model::JobModel& job) {
  std::vector<End> out;
  for (const model::Fact* fact : model::facts(job, "ended-at")) {
    const std::string call = fact->text("call").value_or("");
    if (fact->rank && call.starts_with("MPI_")) {
      out.push_back(recorded_end(*fact, call));
    }
  }
  for (const MpiEnd& told : mpi_ends_told(job)) {
    if (std::none_of(out.begin(), out.end(),
                     [&told](const End& end) { return end.rank == told.rank; })) {
      out.push_back(told_end(job, told));
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const End& a, const End& b) { return a.time < b.time; });
  return out;
}

bool launcher_ended(const model::JobModel& job, model::Rank rank) {
  const model::Process* process = model::rank_process(job, rank);
  return process != nullptr && was_cleaned_up(job, *process);
}

/// Another rank is known to have failed or exited: calls to it fail because of that.
bool others_were_gone(const graph::Examination& examination, const std::vector<End>& ends) {
  const model::RankSet gone = ranks_where(examination, [&](const graph::Standing& standing) {
    const bool over = standing.activity == graph::Activity::kDead ||
                      standing.activity == graph::Activity::kExited;
    return over && standing.process != nullptr && exit_of(examination.job, *standing.process) &&
           !launcher_ended(examination.job, standing.rank) &&
           std::none_of(ends.begin(), ends.end(),
                        [&](const End& end) { return end.rank == standing.rank; });
  });
  return !gone.empty();
}

Suspect suspect_of(const model::JobModel& job, const End& end) {
  Suspect suspect{.rank = end.rank};
  suspect.process = model::rank_process(job, end.rank);
  suspect.place = end.place;
  const bool waited = newest_call(job, end.rank, true) != nullptr;  // perhaps for too long
  suspect.confidence = is_abort(end) && !waited ? Confidence::kCertain : Confidence::kLikely;
  const bool line_is_known = end.line.empty();
  suspect.note = !is_abort(end)  ? "its call of MPI fails here"
                 : line_is_known ? "calls MPI_Abort here"
                                 : "its last call before MPI_Abort";
  suspect.deed = is_abort(end) ? "called MPI_Abort" : "was ended by MPI, whose call failed,";
  if (!end.line.empty()) {
    suspect.evidence = "log: " + base::elide(base::printable(end.line), kLongestLine);
  } else if (is_abort(end)) {
    suspect.evidence =
        fmt::format("rank {} called MPI_Abort with code {}", end.rank, end.status.value_or(0));
  } else {
    suspect.evidence = fmt::format("rank {} ended with status {} inside {}", end.rank,
                                   end.status.value_or(0), end.call);
  }
  return suspect;
}

/// The ranks that called MPI_Abort; if there are none, those that failed for their own reasons.
std::vector<End> first_ends(const graph::Examination& examination) {
  std::vector<End> ends = ends_in_mpi(examination.job);
  if (std::any_of(ends.begin(), ends.end(), is_abort)) {
    std::erase_if(ends, [](const End& end) { return !is_abort(end); });
  } else if (others_were_gone(examination, ends)) {
    ends.clear();
  } else {
    std::erase_if(ends,
                  [&](const End& end) { return fails_by_disagreement(examination, end.rank); });
    std::erase_if(ends, [&](const End& end) {
      return end.line.empty() && (end.status == 0 || launcher_ended(examination.job, end.rank));
    });
  }
  return ends;
}

/// A call in which a rank waited until it called MPI_Abort, and the ranks that had not reached it.
struct GivenUp {
  model::Rank rank = 0;
  std::string group = {};
  std::int64_t sequence = 0;
  std::string operation = {};
  model::RankSet waiting = {};
  model::RankSet missing = {};
};

std::optional<GivenUp> given_up(const graph::Examination& examination) {
  for (const End& end : first_ends(examination)) {
    const auto* call = newest_call(examination.job, end.rank, true);
    for (const Forsaken& one : forsaken_calls(examination)) {
      if (is_abort(end) && call != nullptr && call->group == one.group &&
          call->sequence == one.sequence && one.ranks.contains(end.rank) && !one.missing.empty()) {
        return GivenUp{.rank = end.rank,
                       .group = one.group,
                       .sequence = one.sequence,
                       .operation = one.operation,
                       .waiting = one.ranks,
                       .missing = one.missing};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Suspect> ended_by_mpi(const graph::Examination& examination) {
  if (given_up(examination)) {
    return {};
  }
  std::vector<Suspect> out;
  const std::vector<End> ends = first_ends(examination);
  for (const End& end : ends) {
    if (end.place == ends.front().place && end.call == ends.front().call) {
      out.push_back(suspect_of(examination.job, end));
    }
  }
  return out;
}

std::string_view advice_on_end_by_mpi() {
  return "Read what this rank printed last and mend what made it give up at that line; the other "
         "ranks were ended with it.";
}

Findings given_up_on(const graph::Examination& examination, std::string_view kind) {
  const auto call = given_up(examination);
  if (!call) {
    return {};
  }
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kLikely;
  finding.culprits = call->missing;
  finding.waiting = call->waiting;
  finding.summary = fmt::format("{} had not called {} #{} when rank {} called MPI_Abort",
                                said(call->missing), call->operation, call->sequence, call->rank);
  for (const model::RankSet* side : {&finding.culprits, &finding.waiting}) {
    const model::CollectiveCall* last = examination.history.last(call->group, side->front());
    if (last != nullptr && last->call_site.known()) {
      finding.locations.push_back(
          location(last->call_site, *side, fmt::format("last call of {}", said(*side))));
    }
  }
  finding.fix = fmt::format(
      "Run `ddpdoctor attach PID` while the next run waits: it shows what {} after that line.",
      ranks_do(call->missing, "does", "do"));
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors
