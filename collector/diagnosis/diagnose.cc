// SPDX-License-Identifier: Apache-2.0
// Runs every detector independently; findings are compared only here.
#include <algorithm>
#include <utility>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/deciding_callers.h"
#include "collector/detectors/evidence/origins.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/diagnosis/diagnosis.h"
#include "collector/diagnosis/explain_away.h"
#include "collector/diagnosis/library_places.h"
#include "collector/diagnosis/native_place.h"
#include "collector/diagnosis/overcome.h"
#include "collector/diagnosis/traceback_places.h"
#include "collector/model/questions.h"

namespace ddpdoctor::diagnosis {
namespace {

using detectors::Confidence;
using detectors::Effect;

/// Ranks made different calls under one number, and both were recorded. NCCL does not compare them:
/// it pairs them and computes wrong numbers, or the hosts run ahead of a GPU that waits.
bool calls_contradict(const graph::Examination& examination) {
  return std::any_of(examination.groups.begin(), examination.groups.end(),
                     [](const graph::GroupView& view) {
                       return view.first_divergence &&
                              view.first_divergence->about != graph::Disagreement::kMissing &&
                              view.first_divergence->about != graph::Disagreement::kCallSite;
                     });
}

/// For a job that makes progress, only a proven hang is reported. Slowness, crashes and leaks do
/// not depend on progress. A warning about the future applies only while the job runs.
bool may_be_said(const Judged& judged, const graph::Examination& examination) {
  if (examination.job.progress != model::Progress::kMoving || judged.finding.ahead ||
      judged.effect() != Effect::kHang) {
    return true;
  }
  const Confidence least =
      calls_contradict(examination) ? Confidence::kLikely : Confidence::kCertain;
  return judged.finding.confidence >= least && judged.specificity() != detectors::kSaysNothing;
}

/// Only one snapshot from another tool: a step of a healthy job may look the same.
bool rests_on_one_moment(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  const bool counted = !model::facts(job, "nccl-ras").empty();
  if (counted && job.progress == model::Progress::kUnknown && !job.ended) {
    return true;
  }
  return now != nullptr && job.progress == model::Progress::kUnknown && !job.ended &&
         job.collectives.empty() &&
         std::any_of(now->processes.begin(), now->processes.end(), model::was_dumped);
}

/// Facts that one snapshot is enough for: a log line, an exited process, or a process that has not
/// answered NCCL for a minute.
bool rests_on_an_end(const detectors::Finding& finding, const model::JobModel& job) {
  for (const model::Fact* fact : model::facts(job, "nccl-ras")) {
    if (fact->rank && finding.culprits.contains(*fact->rank) &&
        fact->flag("considered_dead").value_or(false)) {
      return true;
    }
  }
  return std::any_of(finding.culprits.begin(), finding.culprits.end(), [&job](model::Rank rank) {
    const model::Process* process = model::rank_process(job, rank);
    return process != nullptr && process->exit.has_value();
  });
}

void doubt_one_moment(std::vector<Judged>& findings, const model::JobModel& job) {
  if (!rests_on_one_moment(job)) {
    return;
  }
  for (Judged& judged : findings) {
    if (!detectors::rests_on_text(judged.finding) && !rests_on_an_end(judged.finding, job)) {
      judged.finding.confidence = Confidence::kPossible;
    }
  }
}

bool any_of_effect(const std::vector<Judged>& all, Effect effect) {
  return std::any_of(all.begin(), all.end(), [effect](const Judged& judged) {
    return judged.effect() == effect && !judged.finding.ahead &&
           judged.finding.confidence != Confidence::kPossible &&
           judged.specificity() != detectors::kSaysNothing;
  });
}

/// A detector reports a problem whose cause it does not know.
bool any_undecided(const std::vector<Judged>& all) {
  return std::any_of(all.begin(), all.end(), [](const Judged& judged) {
    return judged.specificity() == detectors::kSaysNothing || judged.effect() == Effect::kHang;
  });
}

/// A rank failed and the job continued: the other ranks wait and nothing makes progress.
bool others_wait_for_the_failed(const graph::Examination& examination,
                                const std::vector<Judged>& findings) {
  return !examination.job.ended && examination.still() &&
         std::any_of(findings.begin(), findings.end(), [](const Judged& judged) {
           return judged.effect() == Effect::kCrash &&
                  judged.finding.confidence != Confidence::kPossible &&
                  !judged.finding.waiting.empty();
         });
}

bool is_rank(const model::Process& process) {
  return process.role == model::Role::kRank;
}

/// Calls or source lines lost with the end of a recording may point to another cause.
void doubt_a_cut_recording(std::vector<Judged>& findings, const model::JobModel& job) {
  if (model::facts(job, "recording-cut").empty()) {
    return;
  }
  for (Judged& judged : findings) {
    if (!detectors::rests_on_text(judged.finding) && !rests_on_an_end(judged.finding, job)) {
      judged.finding.confidence =
          detectors::at_most(judged.finding.confidence, Confidence::kLikely);
    }
  }
}

/// No rank is left that could hang; the launcher may still be cleaning up.
bool all_ranks_ended(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  if (now == nullptr) {
    return false;
  }
  const auto& all = now->processes;
  return std::any_of(all.begin(), all.end(), is_rank) &&
         std::none_of(all.begin(), all.end(), [](const model::Process& process) {
           return is_rank(process) && detectors::alive(process);
         });
}

/// Ranks of two jobs were taken for one job, or the evidence is from a previous attempt: no finding
/// is certain.
void doubt_another_job(std::vector<Judged>& all, const model::JobModel& job) {
  if (!model::are_several_jobs(job) && !starts_again(job)) {
    return;
  }
  for (Judged& judged : all) {
    judged.finding.confidence = Confidence::kPossible;
  }
}

bool a_rank_failed(const model::JobModel& job) {
  const auto failed = [](const model::Process& process) {
    return process.rank && process.exit &&
           (process.exit->signal || process.exit->status.value_or(0) != 0);
  };
  const model::Observation* now = model::latest(job);
  return !model::facts(job, "error-file").empty() ||
         (now != nullptr && std::any_of(now->processes.begin(), now->processes.end(), failed));
}

/// No rank, process or call was seen: a machine's log shows what failed there, not that a job
/// hangs.
bool no_job_was_seen(const graph::Examination& examination, const std::vector<Judged>& findings) {
  const model::JobModel& job = examination.job;
  return model::latest(job) == nullptr && job.collectives.empty() && !job.world_size &&
         examination.standings.empty() &&
         std::all_of(findings.begin(), findings.end(), [](const Judged& judged) {
           return judged.finding.culprits.empty() && judged.finding.waiting.empty();
         });
}

Verdict verdict_of(const graph::Examination& examination, const std::vector<Judged>& findings) {
  const model::JobModel& job = examination.job;
  const bool over = job.ended || all_ranks_ended(job);
  if (any_of_effect(findings, Effect::kHang) && !(over && a_rank_failed(job))) {
    return no_job_was_seen(examination, findings) ? Verdict::kUndetermined : Verdict::kHang;
  }
  if (others_wait_for_the_failed(examination, findings)) {
    return Verdict::kHang;
  }
  if (any_of_effect(findings, Effect::kCrash) || (over && a_rank_failed(job))) {
    return Verdict::kCrash;
  }
  if (any_of_effect(findings, Effect::kSlow)) {
    return Verdict::kSlow;
  }
  if (any_of_effect(findings, Effect::kLeak)) {
    return Verdict::kLeak;
  }
  if (job.ended) {
    return any_undecided(findings) ? Verdict::kUndetermined : Verdict::kFinished;
  }
  if (job.progress == model::Progress::kMoving || any_of_effect(findings, Effect::kWrongNumbers)) {
    return Verdict::kRunning;
  }
  return Verdict::kUndetermined;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHang:
      return "hang";
    case Verdict::kCrash:
      return "crash";
    case Verdict::kLeak:
      return "leak";
    case Verdict::kSlow:
      return "slow";
    case Verdict::kRunning:
      return "running";
    case Verdict::kFinished:
      return "finished";
    case Verdict::kUndetermined:
      return "undetermined";
  }
  return "undetermined";
}

bool starts_again(const model::JobModel& job) {
  if (job.ended || !all_ranks_ended(job)) {
    return false;
  }
  const auto& all = model::latest(job)->processes;
  const auto lives = [&all](pid_t pid) {
    return std::any_of(all.begin(), all.end(), [pid](const model::Process& process) {
      return process.pid == pid && detectors::alive(process);
    });
  };
  const bool orphaned = std::none_of(all.begin(), all.end(), [&lives](const auto& process) {
    return is_rank(process) && (process.ppid == 0 || lives(process.ppid));
  });
  return orphaned && std::any_of(all.begin(), all.end(), [](const model::Process& process) {
           return process.role == model::Role::kLauncher && detectors::alive(process);
         });
}

Diagnosis diagnose(const model::JobModel& job) {
  Diagnosis diagnosis{.job = job,
                      .findings = {},
                      .detectors_run = {},
                      .examination = graph::examine(job),
                      .stack_diff = stack_diff(job)};
  std::vector<Judged> all;
  for (const detectors::Detector* detector : detectors::catalog()) {
    diagnosis.detectors_run.emplace_back(detector->kind);
    for (detectors::Finding& finding : detector->detect(diagnosis.examination)) {
      detectors::weigh_origins(diagnosis.examination, finding);
      all.push_back({.finding = std::move(finding), .detector = detector});
    }
  }
  std::erase_if(all, [&diagnosis](const Judged& judged) {
    return !may_be_said(judged, diagnosis.examination);
  });
  doubt_one_moment(all, job);
  doubt_a_cut_recording(all, job);
  doubt_another_job(all, job);
  doubt_what_was_overcome(all, job);
  all = without_explained(std::move(all), diagnosis.examination);
  put_in_order(all, diagnosis.examination);
  tell_places_of_tracebacks(all, diagnosis.examination);
  tell_native_places(all, diagnosis.examination);
  tell_library_places(all, diagnosis.examination);
  for (Judged& judged : all) {
    detectors::add_deciding_callers(diagnosis.examination, judged.finding);
  }
  diagnosis.verdict = verdict_of(diagnosis.examination, all);
  for (Judged& judged : all) {
    diagnosis.findings.push_back(std::move(judged.finding));
  }
  return diagnosis;
}

}  // namespace ddpdoctor::diagnosis
