// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/parted_by_exception.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/exceptions_in_hand.h"
#include "collector/detectors/evidence/handlers.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/partings/swallowed.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;

/// In a try of a loop: `for k in range(3): try: return step() except OSError: …`.
bool is_in_retried_try(const model::JobModel& job, const model::CallSite& site) {
  const std::vector<Block> around = program::enclosing(lines_of(job, site.file), site.line);
  const auto is_try = [](const Block& block) { return block.kind == BlockKind::kTry; };
  const auto found = std::find_if(around.begin(), around.end(), is_try);
  return found != around.end() && std::any_of(found, around.end(), is_loop);
}

/// The line in such a try from which both sides were called; unknown if there is none.
model::CallSite shared_try(const model::JobModel& job, const Path& one, const Path& other) {
  const auto found = std::find_if(one.begin(), one.end(), [&](const model::CallSite& site) {
    return std::find(other.begin(), other.end(), site) != other.end() &&
           is_in_retried_try(job, site);
  });
  return found == one.end() ? model::CallSite{} : *found;
}

/// `back` repeats calls that it made before `on` went further down in the same function.
std::optional<Attempt> attempt_of(const graph::Examination& examination, const Side& back,
                                  const Side& on) {
  if (back.call == nullptr || on.call == nullptr) {
    return std::nullopt;
  }
  const model::CollectiveCall* before =
      examination.history.at(back.call->group, back.call->rank, back.call->sequence - 1);
  const model::CallSite& again = back.call->call_site;
  const model::CallSite& further = on.call->call_site;
  if (before == nullptr || !again.known() || !same_function(again, further) ||
      !same_function(again, before->call_site) || before->call_site.line < again.line ||
      before->call_site.line >= further.line) {
    return std::nullopt;
  }
  model::CallSite where = shared_try(examination.job, back.path, on.path);
  return where.known()
             ? std::optional(Attempt{.ranks = back.ranks, .call = again, .again = std::move(where)})
             : std::nullopt;
}

/// Other calls followed each earlier call from this path, at least once.
bool never_repeated(const graph::Examination& examination, const model::CollectiveCall& again) {
  const Path path = graph::callers_of(again);
  std::size_t followed = 0;
  bool last_was = false;
  for (const model::CollectiveCall* call : examination.history.calls(again.group, again.rank)) {
    if (call->sequence >= again.sequence) {
      break;
    }
    const bool is = same_path(graph::callers_of(*call), path);
    if (is && last_was) {
      return false;
    }
    followed += last_was ? 1 : 0;
    last_was = is;
  }
  return followed > 0;
}

/// `back` makes the call again that it made last, from a try of which `on` is past: the code after
/// that call raised.
std::optional<Attempt> repetition_of(const graph::Examination& examination, const Side& back,
                                     const Side& on) {
  const model::CollectiveCall* before =
      back.call == nullptr || on.call == nullptr
          ? nullptr
          : examination.history.at(back.call->group, back.call->rank, back.call->sequence - 1);
  if (before == nullptr || !same_path(graph::callers_of(*before), back.path) ||
      !never_repeated(examination, *back.call)) {
    return std::nullopt;
  }
  const auto where = std::find_if(back.path.begin(), back.path.end(), [&](const auto& site) {
    return only_retries(examination.job, site);
  });
  const bool still_in = where == back.path.end() ||
                        std::find(on.path.begin(), on.path.end(), *where) != on.path.end();
  return still_in ? std::nullopt
                  : std::optional(Attempt{
                        .ranks = back.ranks, .call = back.call->call_site, .again = *where});
}

/// `back` is in such a try, which the others have left, and began more backward passes than they.
std::optional<Attempt> extra_rounds_of(const graph::Examination& examination, const Side& back,
                                       const Side& on) {
  if (back.ranks.empty() || on.ranks.empty() || back.call == nullptr ||
      began_fewer_backwards(examination.job, on.ranks.front(), back.ranks.front()) != true) {
    return std::nullopt;
  }
  const auto where = std::find_if(back.path.begin(), back.path.end(), [&](const auto& site) {
    return only_retries(examination.job, site);
  });
  const bool left = where != back.path.end() &&
                    std::none_of(on.path.begin(), on.path.end(),
                                 [&](const auto& site) { return same_function(site, *where); });
  return left ? std::optional(
                    Attempt{.ranks = back.ranks, .call = back.call->call_site, .again = *where})
              : std::nullopt;
}

std::optional<Attempt> attempt_in(const graph::Examination& examination, const Side& back,
                                  const Side& on) {
  auto found = attempt_of(examination, back, on);
  found = found ? found : repetition_of(examination, back, on);
  return found ? found : extra_rounds_of(examination, back, on);
}

bool handles_exception(const graph::Examination& examination, const Parting& parting) {
  const Side& odd = parting.odd;
  const bool in_one = in_handler(examination.job, odd.path, parting.rest.path) !=
                      in_handler(examination.job, parting.rest.path, odd.path);
  const bool in_with = odd.standing != nullptr && leaves_a_with(examination.job, *odd.standing);
  const auto in_hook = [](const Side& side) {
    return side.standing != nullptr && side.standing->thread != nullptr &&
           in_exception_hook(*side.standing->thread) != nullptr;
  };
  return in_one || in_with || in_hook(odd) != in_hook(parting.rest) ||
         (!odd.ranks.empty() &&
          cleans_up_after_exception(examination.job, odd.ranks.front(), odd.path));
}

}  // namespace

std::optional<Attempt> another_attempt(const graph::Examination& examination,
                                       const Parting& parting) {
  auto found = attempt_in(examination, parting.odd, parting.rest);
  const bool either = parting.tie || parting.odd.ranks.size() > parting.rest.ranks.size();
  return !found && either ? attempt_in(examination, parting.rest, parting.odd) : found;
}

bool parted_by_exception(const graph::Examination& examination, const Parting& parting) {
  return (!parting.shifted && handles_exception(examination, parting)) ||
         swallowed_exception(examination, parting) || another_attempt(examination, parting);
}

std::vector<Suspect> attempts(const graph::Examination& examination) {
  std::vector<Suspect> out;
  for (const Parting& parting : partings(examination)) {
    const auto attempt =
        is_slow(examination, parting) ? std::nullopt : another_attempt(examination, parting);
    if (!attempt) {
      continue;
    }
    for (const model::Rank rank : attempt->ranks) {
      Suspect suspect{.rank = rank, .place = attempt->call};
      suspect.confidence = Confidence::kLikely;
      suspect.note = fmt::format("rank {} calls this again", rank);
      suspect.deed = kStartedOver;
      suspect.retry = attempt->again;
      suspect.evidence = fmt::format(
          "the `try` ({}) calls {}() again after an exception; rank {} skipped the code after the "
          "line that raised, and the others ran it",
          line_of(attempt->again), attempt->call.function, rank);
      out.push_back(std::move(suspect));
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
