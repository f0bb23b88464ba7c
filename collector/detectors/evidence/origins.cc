// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/origins.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

constexpr pid_t kNoParent = -1;  // parent of a process known only from a text

/// Built from the text of a log (imports/logs), not seen by ddpdoctor or a tool.
bool told_by_process(const model::Process& process) {
  return process.ppid == kNoParent &&
         std::none_of(process.threads.begin(), process.threads.end(), [](const model::Thread& one) {
           return !one.frames.empty() && !one.capture.ends_with(model::kOfTraceback);
         });
}

/// Only logs are known of the job.
bool only_text(const model::JobModel& job) {
  double told_calls = 0;
  for (const model::Fact* fact : model::facts(job, model::kCallsOfLog)) {
    told_calls += fact->number("count").value_or(0);
  }
  const auto all = processes(job);
  return !job.logs.empty() && static_cast<double>(job.collectives.size()) <= told_calls &&
         std::all_of(job.facts.begin(), job.facts.end(),
                     [](const model::Fact& fact) { return fact.told; }) &&
         std::all_of(all.begin(), all.end(),
                     [](const auto* process) { return told_by_process(*process); });
}

bool by_others(int signal) {
  return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP;
}

/// The exception that an interpreter holds or printed is the one that the log quotes.
std::optional<Evidence> in_hand(const model::JobModel& job, model::Rank rank,
                                const Finding& finding) {
  const model::Process* process = model::rank_process(job, rank);
  for (const model::Fact* fact : model::facts(job, "exception")) {
    const auto exception = fact->text("exception");
    const bool quoted = exception && process != nullptr && fact->pid == process->pid &&
                        std::any_of(finding.evidence.begin(), finding.evidence.end(),
                                    [&exception](const Evidence& one) {
                                      return origin_of(one) == Origin::kText &&
                                             one.text.find(*exception) != std::string::npos;
                                    });
    if (quoted) {
      return Evidence{
          .rank = rank,
          .text = fmt::format("stack: rank {} still has this exception in its interpreter", rank)};
    }
  }
  return std::nullopt;
}

/// The ranks that the finding is about.
model::RankSet concerned(const Finding& finding) {
  model::RankSet out = finding.culprits.united(finding.waiting);
  for (const Evidence& one : finding.evidence) {
    out = one.rank ? out.united({*one.rank}) : out;
  }
  return out;
}

/// A rank's error file, collected by torchrun.
bool has_error_file(const model::JobModel& job, model::Rank rank) {
  const auto all = model::facts(job, "error-file");
  return std::any_of(all.begin(), all.end(),
                     [rank](const model::Fact* fact) { return fact->rank == rank; });
}

std::optional<Evidence> borne_out(const model::JobModel& job, const Finding& finding) {
  const model::RankSet ranks = finding.culprits.empty() ? concerned(finding) : finding.culprits;
  for (const model::Rank rank : ranks) {
    if (auto second = in_hand(job, rank, finding)) {
      return second;
    }
  }
  for (const model::Rank rank : ranks.united(concerned(finding))) {
    if (auto second = own_end(job, rank)) {
      return second;
    }
    if (has_error_file(job, rank)) {
      return Evidence{.rank = rank,
                      .text = fmt::format("launcher: it collected an error file of rank {}", rank)};
    }
  }
  return std::nullopt;
}

std::set<Origin> origins_of(const model::JobModel& job, const Finding& finding) {
  const bool all_is_text = only_text(job);
  std::set<Origin> out;
  for (const Evidence& one : finding.evidence) {
    const Origin origin = origin_of(one);
    out.insert(origin == Origin::kSeen && all_is_text ? Origin::kText : origin);
  }
  if (finding.evidence.empty() && all_is_text) {
    out.insert(Origin::kText);
  }
  return out;
}

}  // namespace

Origin origin_of(const Evidence& evidence) {
  constexpr std::array<std::pair<std::string_view, Origin>, 5> kLabels = {
      {{"log: ", Origin::kText},
       {"log of ", Origin::kText},
       {"launcher: ", Origin::kLauncher},
       {"exit: ", Origin::kEnd},
       {"stack: ", Origin::kStack}}};
  for (const auto& [label, origin] : kLabels) {
    if (evidence.text.starts_with(label)) {
      return origin;
    }
  }
  return Origin::kSeen;
}

std::string_view quote_in(const Evidence& evidence) {
  constexpr std::array<std::string_view, 3> kSources = {"log: ", "kernel: ", "launcher: "};
  for (const std::string_view source : kSources) {
    if (evidence.text.starts_with(source)) {
      return std::string_view(evidence.text).substr(source.size());
    }
  }
  return {};
}

bool rests_on_text(const Finding& finding) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [](const Evidence& one) {
    return origin_of(one) == Origin::kText || origin_of(one) == Origin::kLauncher;
  });
}

std::optional<Evidence> own_end(const model::JobModel& job, model::Rank rank) {
  const model::Process* process = model::rank_process(job, rank);
  const auto exit = process == nullptr ? std::nullopt : exit_of(job, *process);
  if (!exit || (exit->signal ? by_others(*exit->signal) : exit->status.value_or(0) == 0)) {
    return std::nullopt;
  }
  const bool told = told_by_process(*process);
  return Evidence{.rank = rank,
                  .text = fmt::format("{}: rank {} {}{}", told ? "launcher" : "exit", rank,
                                      exit->signal ? "was " : "", how_it_ended(exit))};
}

void weigh_origins(const graph::Examination& examination, Finding& finding) {
  const model::JobModel& job = examination.job;
  std::set<Origin> origins = origins_of(job, finding);
  const bool words = origins.contains(Origin::kText) || origins.contains(Origin::kLauncher);
  if (!words || finding.confidence != Confidence::kCertain) {
    return;
  }
  if (origins.size() == 1) {
    if (auto second = borne_out(job, finding); second && !origins.contains(origin_of(*second))) {
      origins.insert(origin_of(*second));
      finding.evidence.push_back(std::move(*second));
    }
  }
  finding.confidence = at_most(finding.confidence, confidence_of(static_cast<int>(origins.size())));
}

}  // namespace ddpdoctor::detectors
