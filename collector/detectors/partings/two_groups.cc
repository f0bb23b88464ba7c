// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/two_groups.h"

#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/blocked_call.h"
#include "collector/graph/device_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Standing;

/// A framework's own program without user frames.
bool is_of_framework(const model::Thread& thread) {
  const model::Frame* place = model::user_frame(thread);
  return place != nullptr && model::is_framework_file(place->file);
}

bool group_is_guessed(const graph::Examination& examination, const Standing* standing) {
  if (standing == nullptr || !standing->call || standing->call->sequence ||
      standing->thread == nullptr || standing->activity != graph::Activity::kCollective ||
      !is_of_framework(*standing->thread)) {
    return false;
  }
  const auto call = graph::call_in_frames(examination.job, standing->thread->frames);
  return !call || call->group.empty();
}

/// The odd rank, one of the only two that are known, waits in another group in which it alone was
/// seen; a log made the list of its members.
bool has_unknown_peers(const graph::Examination& examination, const Parting& parting) {
  const Standing* odd = parting.odd.standing;
  const graph::GroupView* view = odd != nullptr && odd->call && odd->process == nullptr
                                     ? examination.group(odd->call->group)
                                     : nullptr;
  return parting.recorded && parting.odd.calls() && view != nullptr &&
         view->group.id != parting.group && view->group.ranks.size() == 1 &&
         model::all_ranks(examination.job).size() == 2;
}

}  // namespace

bool on_two_backends(const graph::Examination& examination, model::Rank one, model::Rank other) {
  const Standing* a = examination.standing(one);
  const Standing* b = examination.standing(other);
  if (a == nullptr || b == nullptr || a->thread == nullptr || b->thread == nullptr) {
    return false;
  }
  const std::string_view mine = graph::backend_in(a->thread->frames);
  const std::string_view theirs = graph::backend_in(b->thread->frames);
  return !mine.empty() && !theirs.empty() && mine != theirs;
}

bool would_have_met(const graph::Examination& examination, const Parting& parting) {
  const auto group_is_unknown = [&examination](const Side& side) {
    const Standing* standing = side.standing;
    if (side.call != nullptr || standing == nullptr || standing->thread == nullptr ||
        (standing->call && standing->call->sequence)) {
      return false;
    }
    const auto call = graph::call_in_frames(examination.job, standing->thread->frames);
    return call && call->group.empty();
  };
  return !parting.recorded && parting.odd.calls() &&
         parting.odd.operation == parting.rest.operation && parting.odd.site().known() &&
         parting.rest.site().known() &&
         !graph::same_line(parting.odd.site(), parting.rest.site()) &&
         group_is_unknown(parting.odd) && group_is_unknown(parting.rest);
}

bool groups_are_guessed(const graph::Examination& examination, const Parting& parting) {
  return !parting.recorded && (group_is_guessed(examination, parting.odd.standing) ||
                               group_is_guessed(examination, parting.rest.standing));
}

bool each_waits_for_the_other(const graph::Examination& examination,
                              const Explanation& explanation) {
  return explanation.fork && explanation.parting.tie && explanation.parting.rest.calls() &&
         has_unknown_peers(examination, explanation.parting);
}

bool stand_in_one_function(const model::JobModel& job, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const bool odd_calls = parting.odd.calls();
  const Side& calls = odd_calls ? parting.odd : parting.rest;
  const Side& behind = odd_calls ? parting.rest : parting.odd;
  if (!explanation.fork || parting.recorded || !calls.calls() ||
      behind.activity() != graph::Activity::kGpu || calls.standing->thread == nullptr ||
      graph::backend_in(calls.standing->thread->frames) == "gloo") {
    return false;
  }
  const model::CallSite& at_call = odd_calls ? explanation.fork->ours : explanation.fork->theirs;
  const model::CallSite& later = odd_calls ? explanation.fork->theirs : explanation.fork->ours;
  const bool in_order = at_call.line < later.line || model::all_gpus_are_busy(job);
  return same_function(at_call, later) && !graph::same_line(at_call, later) && in_order &&
         lines_of(job, later.file).empty();
}

void doubt_unknown_peers(const graph::Examination& examination, Explanation& explanation) {
  const bool plain = explanation.cause == Cause::kMissing || explanation.cause == Cause::kExtra ||
                     explanation.cause == Cause::kSharded;
  if (plain && has_unknown_peers(examination, explanation.parting)) {
    explanation.cause =
        each_waits_for_the_other(examination, explanation) ? Cause::kDivergent : Cause::kNone;
  }
}

bool explains(const Branch& branch, const Parting& parting) {
  return branch.leads_to_ours ? parting.odd.calls() : parting.rest.calls();
}

}  // namespace ddpdoctor::detectors
