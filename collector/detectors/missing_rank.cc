// SPDX-License-Identifier: Apache-2.0
// The plain fact without a finer cause: ranks wait in a collective that one rank has not called.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/after_exception.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/behind_gpus.h"
#include "collector/detectors/evidence/busy_worker.h"
#include "collector/detectors/evidence/exceptions_in_hand.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/late_to_rendezvous.h"
#include "collector/detectors/evidence/out_of_step.h"
#include "collector/detectors/evidence/past_the_call.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/python_locks.h"
#include "collector/detectors/evidence/roll_calls.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/waited_for.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/work_in_log.h"
#include "collector/detectors/partings/ended_by_mpi.h"
#include "collector/detectors/partings/mpi_partings.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::missing_rank {
namespace {

constexpr std::string_view kKind = "missing-rank";
constexpr std::size_t kMostGroupsTold = 5;
constexpr std::size_t kMostInHeadline = 2;  // calls besides the first one

// The thread that holds the lock for which the rank waits: its line must be changed.
void tell_holder(const graph::Examination& examination, const graph::Standing& standing,
                 Finding& finding) {
  if (standing.process == nullptr || standing.thread == nullptr ||
      !waits_for_private_lock(examination.job, *standing.thread)) {
    return;
  }
  const model::Thread* holder =
      holder_of_wanted_lock(examination.job, *standing.process, *standing.thread);
  const model::Frame* at = holder == nullptr ? nullptr : model::user_frame(*holder);
  if (at == nullptr) {
    return;
  }
  const model::CallSite site = model::call_site(*at);
  finding.locations.push_back(location(site, model::RankSet{standing.rank},
                                       full_thread_name(*holder) + " holds the lock here"));
  finding.fix = fmt::format("Release the lock that {} holds before {}, or hold it for less code.",
                            thread_name(*holder), line_of(site));
}

std::string capture(const graph::Examination& examination, const model::RankSet& ranks) {
  constexpr std::string_view kLogs = " while it hangs, or start it with `ddpdoctor run -- …`";
  return fmt::format("Run `ddpdoctor attach PID` on the node{} of {}{}: {} not captured.",
                     ranks.size() == 1 ? "" : "s", said(ranks),
                     model::latest(examination.job) == nullptr ? kLogs : "",
                     ranks.size() == 1 ? "its stack was" : "their stacks were");
}

/// ": it is sleeping (train.py:9)"; empty if that is unknown.
std::string where_it_is(const graph::Examination& examination, const model::RankSet& ranks,
                        const graph::Standing* standing) {
  if (standing == nullptr || standing->activity == graph::Activity::kUnobserved ||
      (standing->activity == graph::Activity::kBetweenCalls && standing->call)) {
    return {};
  }
  return fmt::format("; {} {}", ranks.size() == 1 ? "it" : fmt::format("rank {}", standing->rank),
                     whereabouts(examination.job, *standing));
}

void tell_whereabouts(const graph::Examination& examination, const model::RankSet& ranks,
                      const graph::Standing* standing, Finding& finding) {
  finding.summary += where_it_is(examination, ranks, standing);
  if (standing == nullptr || !standing->user.known()) {
    finding.fix = capture(examination, ranks);
    tell_work_in_log(examination, standing, finding);
  } else if (standing->activity == graph::Activity::kBetweenCalls) {
    finding.fix = fmt::format(
        "Run `ddpdoctor attach PID` on the node of rank {}; or pass its `py-spy dump --pid PID` "
        "output to `ddpdoctor report` with these dumps: they contain no stacks.",
        standing->rank);
  } else if (standing->activity == graph::Activity::kGpu) {
    finding.confidence = Confidence::kPossible;  // its GPU may wait for those that wait for it
    finding.fix =
        "Run `ddpdoctor attach PID` on all ranks with TORCH_FR_BUFFER_SIZE=2000 set, or start with "
        "`ddpdoctor run -- …`: the recorded collectives show what the GPU waits for.";
  } else {
    const auto waited = waited_for(examination.job, *standing);
    const std::string quote = source_quote(examination.job, standing->user);
    finding.fix =
        waited ? waited->advice
               : fmt::format(
                     "Check why {} ({}) does not return on rank {}: print its inputs, "
                     "or add a timeout.",
                     quote.empty() ? "the call" : quote, line_of(standing->user), standing->rank);
    if (waited) {
      add_places(*waited, finding);
    }
    tell_holder(examination, *standing, finding);
  }
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  const auto passed = may_have_passed(examination, parting.odd.standing, parting.rest.standing);
  finding.summary =
      fmt::format("{} not called {}{}", ranks_do(parting.odd.ranks, "has", "have"),
                  waiting_call(examination, explanation), passed ? ", or passed it before" : "");
  tell_whereabouts(examination, parting.odd.ranks, parting.odd.standing, finding);
}

// When the ranks reached the call that was not joined.
double time_of(const Explanation& explanation) {
  const model::CollectiveCall* call = explanation.parting.rest.call;
  return call == nullptr ? std::numeric_limits<double>::infinity()
                         : call->time.value_or(std::numeric_limits<double>::infinity());
}

/// Ranks that are waiting in a different collective themselves: they wait for its cause.
model::RankSet held_up(const graph::Examination& examination, const model::RankSet& ranks) {
  return ranks.common(
      ranks_where(examination, [](const graph::Standing& one) { return one.waits_for_ranks(); }));
}

/// Of the missing ranks, some wait for another one of them (in a recv, in another group): the rank
/// at the end of the chain is the cause.
void blame_where_waiting_ends(const graph::Examination& examination, Side& odd) {
  const model::RankSet held = held_up(examination, odd.ranks);
  const model::RankSet left = odd.ranks.minus(held);
  if (held.empty() || left.empty()) {
    return;
  }
  odd.ranks = left;
  if (odd.standing == nullptr || held.contains(odd.standing->rank)) {
    odd.standing = examination.standing(left.front());
  }
}

/// The log has its exception: it waits behind that line, or no other rank can have raised it.
bool is_the_raiser(const model::JobModel& job, model::Rank rank, const graph::Standing* standing) {
  const auto all = tracebacks(job);
  return std::any_of(all.begin(), all.end(), [&](const Traceback& one) {
    return one.rank == rank && !is_consequence(one) &&
           (one.by_elimination ||
            (waits_at_its_end(standing) && is_behind(one, standing->callers)));
  });
}

/// All of them failed with an exception, and are exiting or known by it: rank-raised reports it.
bool raised(const graph::Examination& examination, const Side& odd) {
  return !odd.ranks.empty() &&
         std::all_of(odd.ranks.begin(), odd.ranks.end(), [&](model::Rank rank) {
           const graph::Standing* standing = examination.standing(rank);
           if (is_the_raiser(examination.job, rank, standing)) {
             return true;
           }
           const auto failed =
               standing == nullptr ? std::nullopt : failed_with(examination.job, *standing);
           return failed && !is_consequence(failed->exception);
         });
}

/// All of them have completed the call in which the others wait: the missing rank is a different,
/// unobserved one.
bool has_been_there(const graph::Examination& examination, const Parting& parting) {
  const graph::Standing* standing = parting.rest.standing;
  const auto waited_in = standing == nullptr ? std::nullopt : standing->call;
  const model::CollectiveCall* waiting =
      parting.rest.call != nullptr || !waited_in || !waited_in->sequence
          ? parting.rest.call
          : examination.history.at(waited_in->group, standing->rank, *waited_in->sequence);
  return waiting != nullptr && !parting.odd.ranks.empty() &&
         std::all_of(parting.odd.ranks.begin(), parting.odd.ranks.end(), [&](model::Rank rank) {
           const model::CollectiveCall* call =
               examination.history.at(waiting->group, rank, waiting->sequence);
           return call != nullptr && call->operation == waiting->operation &&
                  model::is_over(call->state);
         });
}

/// All of them have called MPI_Finalize and nothing makes progress: rank-exited reports it.
bool finalized(const graph::Examination& examination, const Side& odd) {
  return stuck(examination) && !odd.ranks.empty() && odd.call == nullptr &&
         std::all_of(odd.ranks.begin(), odd.ranks.end(),
                     [&](model::Rank rank) { return is_in_finalize(examination.standing(rank)); });
}

/// It sleeps between the iterations of a loop, and not for long so far: the condition may still
/// come true (a file of another program, a free licence).
bool may_find_what_it_polls(const model::JobModel& job, const graph::Standing* standing) {
  constexpr double kLong = 20;  // seconds
  const bool lately = job.seconds_without_progress && *job.seconds_without_progress < kLong;
  return lately && standing != nullptr && standing->thread != nullptr &&
         standing->activity == graph::Activity::kSleeping &&
         graph::has_timer_soon(*standing->thread) && polls(job, *standing->thread);
}

/// Some ranks wait for something before init_process_group, in which all others are.
Findings before_rendezvous(const graph::Examination& examination) {
  const model::RankSet late = late_to_rendezvous(examination);
  const auto still = late.empty() ? std::nullopt : stuck(examination);
  if (!still) {
    return {};
  }
  const graph::Standing* first = examination.standing(late.front());
  Finding finding;
  finding.kind = kKind;
  finding.confidence = may_find_what_it_polls(examination.job, first)
                           ? Confidence::kPossible
                           : unless_somebody_acts(examination, *still);
  finding.culprits = late;
  finding.locations.push_back(
      location(first->user, late, fmt::format("{} {} here", said(late), is_or_are(late))));
  add_waiting(examination, model::all_ranks(examination.job).minus(late), finding);
  finding.summary =
      fmt::format("{} not called init_process_group, in which {}", ranks_do(late, "has", "have"),
                  ranks_do(finding.waiting, "is waiting", "are waiting"));
  tell_whereabouts(examination, late, first, finding);
  finding.fix +=
      " init_process_group() returns only after every rank has called it: do not wait, before the "
      "call, for something that another rank does after it.";
  return {std::move(finding)};
}

/// A call that was never joined, and the missing ranks.
struct Unjoined {
  std::string call;
  model::RankSet ranks;
};

/// Groups of one kind have one name, and their calls often one number: "ranks 10 and 15 have not
/// called all_to_all #7 of EXPERTS". A group with a different call follows.
std::string headline(const std::vector<Unjoined>& calls) {
  std::string text;
  model::RankSet more;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i <= kMostInHeadline) {
      text += fmt::format("{}{} not called {}", i == 0 ? "" : ", ",
                          ranks_do(calls[i].ranks, "has", "have"), calls[i].call);
    } else {
      more = more.united(calls[i].ranks);
    }
  }
  return more.empty() ? text
                      : text + fmt::format(", {} not called others", ranks_do(more, "has", "have"));
}

/// The missing ranks of the other groups belong in the headline and the fix, too, so that a reader
/// of only those finds all ranks. `unjoined`: those of the first group, then of the others.
void tell_others(const graph::Examination& examination, const graph::Standing* standing,
                 const std::vector<Unjoined>& unjoined, Finding& finding) {
  std::vector<Unjoined> calls;
  model::RankSet all;
  for (const Unjoined& one : unjoined) {
    // A rank may be missing in several groups of its own.
    const model::RankSet more = one.ranks.minus(all);
    all = all.united(more);
    const auto known = std::find_if(calls.begin(), calls.end(), [&one](const Unjoined& other) {
      return other.call == one.call;
    });
    if (known != calls.end()) {
      known->ranks = known->ranks.united(more);
    } else if (!more.empty()) {
      calls.push_back({.call = one.call, .ranks = more});
    }
  }
  const model::RankSet& first = unjoined.front().ranks;
  if (all == first) {
    return;
  }
  finding.summary = headline(calls) + where_it_is(examination, all, standing);
  if (standing == nullptr || !standing->user.known()) {
    finding.fix = capture(examination, all);
  } else {
    finding.fix += " " + capture(examination, all.minus(first));
  }
}

// A lost rank makes all its groups wait: one cause, reported where the waiting began.
Findings detect(const graph::Examination& examination) {
  std::vector<Explanation> all = explanations(examination, Cause::kMissing);
  const bool one_raised = std::any_of(all.begin(), all.end(), [&](const Explanation& one) {
    return raised(examination, one.parting.odd);
  });
  std::erase_if(all, [&](const Explanation& one) {
    return raised(examination, one.parting.odd) || finalized(examination, one.parting.odd) ||
           has_been_there(examination, one.parting) ||
           lost_step(examination, one.parting.group, one.parting.odd.ranks);
  });
  if (all.empty() && one_raised) {
    return {};
  }
  if (all.empty()) {
    if (auto elsewhere = elsewhere_than_gpus(examination)) {
      return {*std::move(elsewhere)};
    }
    if (auto missing = missing_in_new_group(examination)) {
      return {*std::move(missing)};
    }
    if (auto told = roll_call_missed(examination, kKind, Meeting::kLater)) {
      return {*std::move(told)};
    }
    Findings late = before_rendezvous(examination);
    return late.empty() ? given_up_on(examination, kKind) : late;
  }
  for (Explanation& one : all) {
    blame_where_waiting_ends(examination, one.parting.odd);
  }
  std::stable_sort(all.begin(), all.end(), [](const Explanation& a, const Explanation& b) {
    return time_of(a) < time_of(b);
  });
  Finding first;
  std::vector<Unjoined> unjoined;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Finding finding = finding_of(examination, all[i], all[i].branch ? 1 : 0);
    if (all[i].parting.odd.activity() == graph::Activity::kPointToPoint) {
      // It waits for a message itself: the cause is with its partner.
      finding.confidence = std::min(finding.confidence, Confidence::kLikely);
    }
    tell(examination, all[i], finding);
    const graph::Standing* odd = all[i].parting.odd.standing;
    if (its_worker_is_busy(examination.job, odd) || may_find_what_it_polls(examination.job, odd)) {
      finding.confidence = Confidence::kPossible;
    }
    const std::string call = waiting_call(examination, all[i]);
    if (i == 0) {
      unjoined.push_back({.call = call, .ranks = finding.culprits});
      first = std::move(finding);
      continue;
    }
    const model::RankSet held = held_up(examination, finding.culprits);
    first.culprits = first.culprits.united(finding.culprits.minus(held));
    first.waiting = first.waiting.united(finding.waiting).united(held);
    if (held == finding.culprits) {
      continue;
    }
    if (!finding.evidence.empty() && i < kMostGroupsTold) {  // ranks that reached that call
      const std::size_t at = std::min(unjoined.size(), first.evidence.size());
      first.evidence.insert(first.evidence.begin() + static_cast<std::ptrdiff_t>(at),
                            finding.evidence.front());
    }
    unjoined.push_back({.call = call, .ranks = finding.culprits.minus(held)});
    first.confidence = std::max(first.confidence, finding.confidence);
    if (i < kMostGroupsTold) {
      first.evidence.push_back({.rank = std::nullopt, .text = std::move(finding.summary)});
    }
  }
  tell_others(examination, all.front().parting.odd.standing, unjoined, first);
  first.kind = kKind;
  first.waiting = first.waiting.minus(first.culprits);
  return {first};
}

constexpr std::string_view kExplanation =
    R"(What you see: all ranks but one (or a few) wait in a collective.

Why: a collective finishes only when every rank of its group has called it. This rank has not; the report shows what it does instead.
That can be a lock, a sleep, a file, a debugger, or code that waits for something else.

How ddpdoctor knows: its sequence number in the group is lower than that of the waiting ranks, or its stack is not in the collective.
No more specific cause matched.

Fix: it depends on what the rank is doing; start at its line. Record the next run from its start; then ddpdoctor usually names the
branch or loop that made the rank skip the call.

    - $ torchrun --nproc_per_node=4 train.py
    + $ ddpdoctor run -- torchrun --nproc_per_node=4 train.py
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = kKind,
                           .title = "A rank has not called a collective",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kPlainFact};

}  // namespace ddpdoctor::detectors::missing_rank
