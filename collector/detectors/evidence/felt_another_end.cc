// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/felt_another_end.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/engine_waits.h"
#include "collector/detectors/evidence/first_to_fail.h"
#include "collector/detectors/evidence/interrupted_parent.h"
#include "collector/detectors/evidence/next_steps.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestException = 240;

/// No process was seen running, and not all are known to have ended successfully: only logs exist.
bool only_words_are_left(const model::JobModel& job) {
  const auto seen = processes(job);
  bool failed = seen.empty();
  for (const model::Process* process : seen) {
    const auto exit = exit_of(job, *process);
    const bool read = std::any_of(process->threads.begin(), process->threads.end(),
                                  [](const model::Thread& one) { return !one.frames.empty(); });
    if (!exit || read) {
      return false;
    }
    failed = failed || exit->signal || exit->status.value_or(0) != 0;
  }
  return failed;
}

}  // namespace

Findings felt_another_end(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  const std::vector<FeltAnEnd> felt = only_words_are_left(job) && examination.history.empty()
                                          ? felt_an_end(job)
                                          : std::vector<FeltAnEnd>{};
  if (auto engine = felt.empty() ? std::nullopt : engine_waits(job)) {
    return {std::move(*engine)};
  }
  if (auto interrupt = interrupted_parent(felt); felt.empty() || interrupt) {
    return interrupt ? Findings{std::move(*interrupt)} : Findings{};
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  model::RankSet ranks;
  std::map<model::CallSite, model::RankSet> places;
  for (const FeltAnEnd& one : felt) {
    const model::RankSet itself = one.rank ? model::RankSet{*one.rank} : model::RankSet{};
    ranks = ranks.united(itself);
    if (one.place.known()) {
      model::RankSet& there = places[one.place];
      there = there.united(itself);
    }
  }
  for (const auto& [site, there] : places) {
    finding.locations.push_back(location(
        site, there, fmt::format("{} failed here", there.empty() ? "a rank" : said(there))));
  }
  finding.evidence.push_back(
      {.rank = felt.front().rank,
       .text = "log: " + base::elide(base::printable(felt.front().exception), kLongestException)});
  const model::RankSet silent = silent_ranks(job, felt);
  finding.culprits = silent.size() == 1 ? silent : model::RankSet{};
  const bool files = !model::facts(job, "error-file").empty();
  const bool one = ranks.size() <= 1;
  const std::string whom = ranks.empty() ? "a rank" : said(ranks);
  const model::RankSet others = started_by_other_agents(job);
  const auto all = [&felt](bool FeltAnEnd::* what) {
    return std::all_of(felt.begin(), felt.end(), [what](const FeltAnEnd& f) { return f.*what; });
  };
  finding.summary = fmt::format(
      "{} {} {}; {}", whom,
      !all(&FeltAnEnd::lost_its_connection) ? "failed because of"
      : one                                 ? "lost its connection to"
                                            : "lost their connection to",
      others.size() == 1 ? said(others) : std::string("another rank"),
      silent.empty() ? std::string("no file shows which rank exited first")
                     : fmt::format("{} {}", said(silent),
                                   files ? "left no error file" : "wrote no traceback"));
  finding.fix =
      silent.empty()
          ? "Read the output of the launcher and of the other nodes: it shows which rank exited "
            "first, and why."
          : fmt::format(
                "Read in the output of the launcher how {} exited: killed (dmesg, memory), or by "
                "sys.exit.",
                said(silent));
  const bool in_store = std::all_of(felt.begin(), felt.end(),
                                    [](const FeltAnEnd& f) { return f.store_wait.known(); });
  if (silent.empty() && in_store) {
    finding.waiting = ranks;
    finding.summary = fmt::format(
        "{} waited in the store ({}) until the timeout; the rank that sets this key had not set it",
        whom, place(felt.front().store_wait));
    finding.fix =
        "Run `ddpdoctor attach PID` on the launcher during the wait: it shows where the other "
        "ranks are. If they are only late, pass a longer timeout to init_process_group.";
  } else if (silent.empty() && !files && all(&FeltAnEnd::timed_out)) {
    finding.summary = fmt::format(
        "{} waited for another rank until the timeout; the log does not show which rank did not "
        "arrive",
        whom);
    finding.fix = next_steps(examination);
  }
  return {finding};
}

}  // namespace ddpdoctor::detectors
