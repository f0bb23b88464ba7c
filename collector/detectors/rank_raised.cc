// SPDX-License-Identifier: Apache-2.0
// rank-raised: one rank raised; the others wait for it or fail later with messages of their own
// ("Connection closed by peer"), which are printed first. Or the rank waits in its handler.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/advice_on_end.h"
#include "collector/detectors/evidence/after_exception.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/caught_memory.h"
#include "collector/detectors/evidence/first_to_fail.h"
#include "collector/detectors/evidence/former_life.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/raised_lines.h"
#include "collector/detectors/evidence/rendezvous_failures.h"
#include "collector/detectors/evidence/shared_code.h"
#include "collector/detectors/evidence/signal_exceptions.h"
#include "collector/detectors/evidence/standing_handlers.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_addresses.h"
#include "collector/detectors/evidence/told_differences.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/watchdog_errors.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/detectors/partings/disagreed.h"
#include "collector/detectors/partings/ended_by_mpi.h"
#include "collector/detectors/partings/mpi_partings.h"
#include "collector/detectors/partings/parted_by_exception.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/swallowed.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::rank_raised {
namespace {

constexpr std::string_view kKind = "rank-raised";
constexpr std::size_t kLongestLine = 240;
constexpr std::string_view kStartsUnguarded =
    "raised: a child runs the program again and starts processes outside `if __name__ == "
    "\"__main__\"`";

/// The exception was swallowed, and with it the call in which the others wait was skipped.
bool left_calls_out(const graph::Examination& examination, const Traceback& traceback) {
  const std::vector<Parting> parted = partings(examination);
  return std::any_of(parted.begin(), parted.end(), [&](const Parting& parting) {
    const auto swallowed = swallowed_exception(examination, parting);
    return swallowed && swallowed->log == traceback.log && swallowed->number == traceback.number;
  });
}

/// Each rank failed by itself: an exception without a rank belongs to them.
bool every_rank_failed(const model::JobModel& job) {
  const auto all = processes(job);
  return job.ended && std::all_of(all.begin(), all.end(), [&job](const model::Process* process) {
           const auto exit = exit_of(job, *process);
           return !process->rank || (exit && !exit->signal && exit->status.value_or(0) != 0);
         });
}

Confidence sureness(const graph::Examination& examination, const Traceback& traceback, bool last) {
  const model::JobModel& job = examination.job;
  const bool moving = job.progress == model::Progress::kMoving;
  if (moving || traceback.ignored || !last || nccl_explains(job, traceback.exception)) {
    return Confidence::kPossible;
  }
  if (!traceback.rank && wrote_on(job, traceback)) {
    return Confidence::kPossible;
  }
  // If ranks are known, it may come from any tool that the job's script runs.
  if (!traceback.rank) {
    return model::ranks_seen(job).empty() || every_rank_failed(job) ||
                   is_code_of_ranks(job, traceback) ||
                   (traceback.of_process && was_interrupted(job))
               ? Confidence::kLikely
               : Confidence::kPossible;
  }
  if (traceback.of_thread) {
    return examination.still() && misses_its_thread(examination, *traceback.rank)
               ? Confidence::kCertain
               : Confidence::kLikely;
  }
  const graph::Standing* standing = examination.standing(*traceback.rank);
  if (standing != nullptr && examination.still() &&
      cleans_up_after_exception(job, *traceback.rank, standing->callers)) {
    return Confidence::kCertain;
  }
  if (!lived_on(job, *traceback.rank) || is_in_finalize(standing)) {
    return wrote_on(job, traceback) ? Confidence::kPossible : Confidence::kCertain;
  }
  const bool skipped = examination.still() && left_calls_out(examination, traceback);
  const bool led = standing != nullptr && is_behind(traceback, standing->callers);
  const bool gave_up = waits_at_its_end(standing) && (led || !wrote_on(job, traceback));
  return skipped ? Confidence::kCertain : gave_up ? Confidence::kLikely : Confidence::kPossible;
}

/// The log alone is known, nothing else in it is a failure or a wait, and it continues as before.
bool did_no_harm(const graph::Examination& examination, const Traceback& traceback) {
  const model::JobModel& job = examination.job;
  return !job.ended && job.observations.empty() && job.collectives.empty() &&
         wrote_on(job, traceback);
}

/// The current attempt could not connect, and a previous one has other exceptions.
std::vector<Suspect> raised_in_former_life(const model::JobModel& job) {
  std::vector<Suspect> out;
  for (const Traceback& traceback : exceptions_of_former_life(job)) {
    Suspect suspect{.rank = traceback.rank, .place = traceback.place};
    suspect.confidence = Confidence::kLikely;
    suspect.note = raised_here(traceback) + ", before the job was restarted";
    suspect.deed = kRaised;
    suspect.evidence = "log of an earlier attempt: " +
                       base::elide(base::printable(traceback.exception), kLongestLine);
    out.push_back(std::move(suspect));
  }
  return out;
}

/// Raised for its own reasons. A rank ends with its last exception; it handled earlier ones.
std::vector<Suspect> own_exceptions(const graph::Examination& examination) {
  std::vector<Traceback> all = tracebacks(examination.job);
  const bool disputed = addresses_differ(examination.job);
  const bool signalled = !left_for_a_signal(examination).empty();
  drop_echoes(all);
  std::erase_if(all, [&](const Traceback& traceback) {
    const bool of_mpi = traceback.exception.find("mpi4py.MPI.Exception") != std::string::npos;
    return (is_consequence(traceback) && !found_nobody(traceback)) || !traceback.place.known() ||
           is_nccl_after_timeout(examination.job, traceback) || failed_to_reach_store(traceback) ||
           (disputed && makes_store(traceback)) || did_no_harm(examination, traceback) ||
           tells_difference(traceback.exception) ||
           (signalled && !signal_of_exception(traceback.exception).empty()) ||
           (of_mpi && traceback.rank && fails_by_disagreement(examination, *traceback.rank));
  });
  std::vector<Suspect> out;
  if (!std::all_of(all.begin(), all.end(), found_nobody)) {
    std::erase_if(all, found_nobody);
  } else if (!all.empty() && examination.job.ended) {
    out = raised_in_former_life(examination.job);
    if (!out.empty()) {
      return out;
    }
  }
  std::erase_if(all, [](const Traceback& one) { return is_consequence(one); });
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Traceback& traceback = all[i];
    const bool last =
        !traceback.rank ||
        std::none_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                     [&](const Traceback& later) { return later.rank == traceback.rank; });
    Suspect suspect{.rank = traceback.rank, .place = traceback.place};
    suspect.confidence = sureness(examination, traceback, last);
    if (traceback.by_elimination || raised_before(all, traceback)) {
      suspect.confidence = at_most(suspect.confidence, Confidence::kLikely);
    }
    suspect.note = raised_here(traceback);
    suspect.raiser = traceback.raiser;
    suspect.writer = traceback.writer;
    suspect.deed = starts_without_guard(traceback) ? kStartsUnguarded : kRaised;
    suspect.evidence = "log: " + base::elide(base::printable(traceback.exception), kLongestLine);
    out.push_back(std::move(suspect));
  }
  return out;
}

bool any_sure(const std::vector<Suspect>& suspects) {
  return std::any_of(suspects.begin(), suspects.end(), [](const Suspect& suspect) {
    return suspect.confidence != Confidence::kPossible;
  });
}

/// It exited before it reached a call in which others then failed: it raised or left without
/// readable output. dead-rank reports killed ranks.
std::vector<Suspect> left_without_word(const graph::Examination& examination) {
  std::vector<Suspect> out;
  for (const Forsaken& forsaken : forsaken_calls(examination)) {
    for (const model::Rank rank : forsaken.missing) {
      const model::Process* process = model::rank_process(examination.job, rank);
      const auto exit = process == nullptr ? std::nullopt : exit_of(examination.job, *process);
      const bool ended_by_launcher = exit && exit->signal == SIGTERM;
      // No exception ends Python with another status: rank-exited reports it.
      if (!exit || !(ended_by_launcher || (!exit->signal && exit->status == 1))) {
        continue;
      }
      const model::CollectiveCall* last = examination.history.last(forsaken.group, rank);
      Suspect suspect{.rank = rank};
      suspect.place = last == nullptr ? model::CallSite{} : last->call_site;
      suspect.confidence = Confidence::kLikely;
      suspect.note = fmt::format("last call of rank {}; it failed later", rank);
      suspect.deed = "failed after its last call";
      suspect.evidence = fmt::format("rank {} exited before {} #{}, in which {} then failed", rank,
                                     forsaken.operation, forsaken.sequence, said(forsaken.ranks));
      out.push_back(std::move(suspect));
    }
  }
  return out;
}

/// Only a log exists, in which a launcher reports how a rank ended, without a reason. With another
/// status it left on purpose: no exception ends Python with that status.
std::vector<Suspect> failed_without_traceback(const graph::Examination& examination) {
  std::vector<Suspect> out;
  for (const Failed& failed : failed_without_word(examination)) {
    if (failed.status == 1) {
      Suspect suspect{.rank = failed.rank};
      suspect.confidence = failed.sure ? Confidence::kLikely : Confidence::kPossible;
      suspect.deed = "failed; no log shows why";
      suspect.evidence = fmt::format("launcher: rank {} exited with status 1", failed.rank);
      out.push_back(std::move(suspect));
    }
  }
  return out;
}

bool waits_in_event_loop(const graph::Examination& examination, const Suspect& suspect) {
  const graph::Standing* standing =
      suspect.process == nullptr || !suspect.rank ? nullptr : examination.standing(*suspect.rank);
  return standing != nullptr && standing->activity == graph::Activity::kEventLoop;
}

/// "rank 2", "a worker process of rank 2", "Trainer.step (pid 2291 on 10.0.0.4)", "a rank on GPU
/// 0".
std::string subject_of(const std::vector<Suspect>& there, const Traceback* quoted) {
  const Suspect& first = there.front();
  const std::string gpu =
      first.deed == kCaughtMemory ? gpu_of_message(first.evidence) : std::string();
  if (quoted != nullptr) {
    return first.rank ? fmt::format("{} of {}", named(*quoted->remote), who(there))
                      : named(*quoted->remote);
  }
  const std::string other = gpu.empty() ? "a rank" : "a rank on " + gpu;
  return first.rank ? who(there) : common_writer(there).empty() ? other : common_writer(there);
}

/// Besides the raising line: where the rank handles the exception.
void add_handler(const graph::Examination& examination, const std::vector<Suspect>& suspects,
                 Finding& finding) {
  for (const Suspect& suspect : suspects) {
    const graph::Standing* standing =
        suspect.process == nullptr || !suspect.rank ? nullptr : examination.standing(*suspect.rank);
    if (standing != nullptr && standing->user.known() &&
        !graph::same_line(standing->user, suspect.place)) {
      const bool waits = waits_in_event_loop(examination, suspect);
      finding.locations.push_back(location(
          *standing,
          fmt::format("rank {} {} here", *suspect.rank, waits ? "is waiting" : "is handling it")));
    }
  }
}

/// For a running rank that is certainly at fault, its current line was used as well.
void add_stacks(const graph::Examination& examination, const std::vector<Suspect>& suspects,
                Finding& finding) {
  for (const Suspect& suspect : suspects) {
    const graph::Standing* standing = suspect.rank ? examination.standing(*suspect.rank) : nullptr;
    if (suspect.confidence == Confidence::kCertain && suspect.evidence.starts_with("log: ") &&
        standing != nullptr && standing->process != nullptr && alive(*standing->process)) {
      finding.evidence.push_back(
          {.rank = suspect.rank,
           .text = fmt::format("stack: rank {} is still running and makes no progress",
                               *suspect.rank)});
    }
  }
}

std::string_view advice(const graph::Examination& examination, const Suspect& suspect,
                        bool by_mpi) {
  if (by_mpi) {
    return advice_on_end_by_mpi();
  }
  if (suspect.deed == kStartedOver) {
    return "Retry only code without collectives; otherwise all_reduce a flag after each attempt, "
           "so that all ranks retry together.";
  }
  if (suspect.deed == kCaughtMemory) {
    return "Lower the batch (tokens) per GPU. Skip a batch on all ranks together: all_reduce a "
           "flag "
           "after the forward, before the backward.";
  }
  if (suspect.deed == kStartsUnguarded) {
    return kGuardFix;
  }
  if (const auto told = advice_by_text(suspect.evidence); !told.empty()) {
    return told;
  }
  if (suspect.deed == kTriesAgain) {
    return "Limit the retries (raise after N attempts or after a time), and fix the error of the "
           "attempt.";
  }
  return waits_in_event_loop(examination, suspect)
             ? "Fix the exception. Await the task itself (asyncio.TaskGroup, gather), so that its "
               "failure is raised where the results are awaited."
             : "Fix the exception. Exit at once on failure instead of waiting for the other ranks: "
               "no barrier in except or finally.";
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects = own_exceptions(examination);
  bool by_mpi = false;
  if (!any_sure(suspects)) {
    for (auto* const others_told : {failed_in_nccl, told_by_watchdogs}) {
      if (Findings told = others_told(examination.job, kKind); !told.empty()) {
        return told;
      }
    }
    auto others = ended_by_mpi(examination);
    by_mpi = !others.empty();
    others = others.empty() ? caught_out_of_memory(examination) : std::move(others);
    others = others.empty() ? failed_on_their_way_out(examination) : std::move(others);
    others = others.empty() ? stand_in_handler(examination) : std::move(others);
    others = others.empty() ? attempts(examination) : std::move(others);
    others = others.empty() ? left_without_word(examination) : std::move(others);
    others = others.empty() ? failed_without_traceback(examination) : std::move(others);
    suspects = std::move(others);  // an exception from which its rank recovered explains nothing
  }
  Findings findings;
  const auto all = suspects.empty() ? std::vector<Traceback>{} : tracebacks(examination.job);
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const std::string_view deed = there.front().deed;
    const Traceback* quoted = quoted_at(all, there.front());
    finding.summary = fmt::format("{} {}{}{}", subject_of(there, quoted),
                                  !deed.empty()                 ? deed
                                  : finding.culprits.size() > 1 ? "are handling an exception"
                                                                : "is handling an exception",
                                  placed(there.front().place), and_who_waits(finding));
    if (quoted != nullptr) {
      add_awaiting_line(*quoted, finding);
    }
    add_handler(examination, there, finding);
    add_raiser(there.front(), finding);
    add_stacks(examination, there, finding);
    finding.fix = advice(examination, there.front(), by_mpi);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "One rank raised while the others wait for it",
    .explanation =
        R"(What you see: the others are in a collective, or print "Connection closed by peer"; the first error that is printed is
often not the first that happened.

Why: one rank raised and has exited, or waits in its own handler (a barrier in finally, destroy_process_group).

How ddpdoctor knows: from the tracebacks of the ranks, except those that only say that another rank failed; or because a rank is in an
except block, called MPI_Abort, or was ended by MPI after a failed call.

Fix:
      except Exception:
    -     dist.barrier()
    +     raise)",
    .detect = detect,
    .specificity = kPlainFact,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::rank_raised
