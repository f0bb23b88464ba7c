// SPDX-License-Identifier: Apache-2.0
// Creating a communicator, splitting one and registering a window are collective, too: some ranks
// do it while the others call something else, or in a different order. It often happens inside the
// first collective of a group, without a line of the program for it.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/communicator_setup.h"
#include "collector/detectors/evidence/group_numbers.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::communicator_setup_order {
namespace {

constexpr std::string_view kKind = "communicator-setup-order";

/// The first call of a group creates its communicator: what the program called.
std::string called(const model::JobModel& job, const Setup& one) {
  if (!one.call || one.call->operation.empty()) {
    return {};
  }
  const std::string group = group_name(job, one.call->group);
  return fmt::format("its first {}{}", one.call->operation,
                     group.empty() ? std::string() : " of " + group);
}

std::string doing(const model::JobModel& job, const Setup& one) {
  const std::string call = called(job, one);
  const std::string_view what = one.kind == SetupKind::kSplit    ? "splitting a communicator"
                                : one.kind == SetupKind::kWindow ? "registering a window"
                                                                 : "creating a communicator";
  return fmt::format("{} ({}){}{}", what, one.function, call.empty() ? "" : " in ", call);
}

/// "are in all_reduce …" for several ranks.
std::string whereabouts_of(const model::JobModel& job, const graph::Standing& standing,
                           const model::RankSet& ranks) {
  const std::string text = whereabouts(job, standing);
  return ranks.size() > 1 && text.starts_with("is ") ? "are " + text.substr(3) : text;
}

std::string_view fix_for(SetupKind kind, bool message) {
  switch (kind) {
    case SetupKind::kSplit:
      return "Create the group on every rank of the parent in the same order; or remove device_id= "
             "from init_process_group(), which makes each new group a split of its parent.";
    case SetupKind::kWindow:
      return "Register windows and symmetric memory on every rank of the group, in the same order.";
    case SetupKind::kInit:
      break;
  }
  return message
             ? "Call barrier() once on every rank of the group before its first "
               "batch_isend_irecv(): the first call creates the communicator, and all ranks must "
               "join it."
             : "Call barrier(group=…) for each group right after new_group(): all ranks then "
               "create "
               "the communicators in the same order.";
}

/// Groups of a rank in the order of their first calls, where times are recorded.
std::vector<std::string> first_uses(const graph::Examination& examination, model::Rank rank) {
  std::vector<std::pair<double, std::string>> uses;
  for (const graph::Calls* calls : examination.history.lanes(rank)) {
    if (!calls->empty() && calls->front()->sequence == 1 && calls->front()->time) {
      uses.emplace_back(*calls->front()->time, calls->front()->group);
    }
  }
  std::sort(uses.begin(), uses.end());
  std::vector<std::string> out;
  for (auto& [time, group] : uses) {
    out.push_back(group_name(examination.job, group));
  }
  return out;
}

void add_order(const graph::Examination& examination, const model::RankSet& ranks,
               Finding& finding) {
  std::map<std::string, model::RankSet> orders;
  for (const model::Rank rank : ranks) {
    const std::vector<std::string> uses = first_uses(examination, rank);
    std::string text;
    for (const std::string& group : uses) {
      text += (text.empty() ? "" : ", ") + group;
    }
    if (uses.size() > 1) {
      orders[text].insert(rank);
    }
  }
  for (const auto& [order, of] : orders) {
    if (orders.size() > 1 && finding.evidence.size() < 10) {
      finding.evidence.push_back(
          {.rank = of.front(), .text = fmt::format("{} first used {}", said(of), order)});
    }
  }
}

/// Ranks that do the same, the largest set first.
struct Party {
  Setup one;
  model::RankSet ranks;
};

std::vector<Party> parties_of(const graph::Examination& examination) {
  std::map<std::string, Party> by_key;
  for (const Setup& one : setups(examination)) {
    Party& party = by_key[key_of(one)];
    if (party.ranks.empty()) {
      party.one = one;
    }
    party.ranks.insert(one.standing->rank);
  }
  std::vector<Party> out;
  for (auto& [key, party] : by_key) {
    out.push_back(std::move(party));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Party& a, const Party& b) { return a.ranks.size() > b.ranks.size(); });
  return out;
}

/// Observed ranks that are in none of the parties and not starting up.
model::RankSet outside_of(const graph::Examination& examination,
                          const std::vector<Party>& parties) {
  return ranks_where(examination, [&](const graph::Standing& one) {
    const bool inside = std::any_of(parties.begin(), parties.end(), [&one](const Party& party) {
      return party.ranks.contains(one.rank);
    });
    return !inside && one.thread != nullptr && one.activity != graph::Activity::kRendezvous;
  });
}

/// In another call, and not in a file, a lock or a worker of their own.
bool all_wait_for_ranks(const graph::Examination& examination, const model::RankSet& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&examination](model::Rank rank) {
    const graph::Standing* one = examination.standing(rank);
    return one != nullptr && (one->waits_for_ranks() || one->activity == graph::Activity::kGpu);
  });
}

Findings detect(const graph::Examination& examination) {
  const std::vector<Party> parties = parties_of(examination);
  const auto sure = stuck(examination);
  if (parties.empty() || !complete_setups(examination).empty() || !sure ||
      !working_ranks(examination).empty() || shared_name(examination)) {
    return {};  // two groups with one name were created differently: new-group-subset reports it
  }
  const auto& all = setups(examination);
  if (std::any_of(all.begin(), all.end(), [](const Setup& one) { return one.bound; })) {
    return {};  // ranks elsewhere may be of another communicator
  }
  const Party& first = parties.front();
  const model::RankSet outside = outside_of(examination, parties);
  const model::RankSet missing =
      outside.common(expected(examination, first.one)).minus(first.ranks);
  if (parties.size() == 1 && (missing.empty() || !all_wait_for_ranks(examination, missing))) {
    return {};  // all are there, or the missing rank has a problem of its own
  }
  Finding finding;
  finding.kind = kKind;
  const bool whole = unobserved_ranks(examination).empty() && !somebody_is_gone(examination);
  finding.confidence = whole ? *sure : Confidence::kPossible;
  model::RankSet in = first.ranks;
  for (const Party& party : parties) {
    in = in.united(party.ranks);
  }
  const model::RankSet& others = parties.size() > 1 ? parties[1].ranks : missing;
  if (parties.size() > 1) {
    finding.culprits = first.ranks.size() > others.size() ? others : in;
  } else if (in.size() != missing.size()) {
    finding.culprits = in.size() < missing.size() ? in : missing;
  }
  finding.waiting = waiting_ranks(examination).united(in).minus(finding.culprits);
  const graph::Standing* other = examination.standing(others.front());
  finding.summary = fmt::format(
      "{} {} {}; {} {}", said(first.ranks), is_or_are(first.ranks),
      doing(examination.job, first.one), said(others),
      parties.size() > 1
          ? fmt::format("{} {}", is_or_are(others), doing(examination.job, parties[1].one))
          : whereabouts_of(examination.job, *other, others));
  const auto& call = first.one.call;
  finding.fix =
      std::string(fix_for(first.one.kind, call && graph::is_point_to_point(call->operation)));
  for (const graph::Standing* standing : {first.one.standing, other}) {
    if (standing->user.known()) {
      const model::RankSet& ranks = standing == other ? others : first.ranks;
      finding.locations.push_back(location(
          standing->user, ranks, fmt::format("{} {} here", said(ranks), is_or_are(ranks))));
    }
  }
  if (!finding.culprits.empty() && finding.culprits == others && finding.locations.size() == 2) {
    std::swap(finding.locations[0], finding.locations[1]);
  }
  add_whereabouts(finding, examination, first.ranks);
  add_whereabouts(finding, examination, others);
  add_order(examination, in.united(outside), finding);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: ranks are in ncclCommInitRank, ncclCommSplit or ncclCommWindowRegister (below: bootstrap, recvmsg), often inside an
all_reduce or batch_isend_irecv that is the first of its group; the others are in another call.

Why: torch makes NCCL's communicators lazily, in the first call of each group, and all members must make that call in the same order.
If init_process_group() got device_id=, new_group() splits the parent communicator instead, and every rank of the parent has to take
part, even ranks that are not members of the new group. A window or symmetric memory must be registered by all ranks as well.

How ddpdoctor knows: some ranks are in one of these functions, and other members of the same group are elsewhere or are creating a
different communicator. If the order in which each rank first used its groups was recorded, the report shows it. A new_group() that
some ranks never call is reported as new-group-subset.

Fix: create all communicators early and in the same order on all ranks.

         tp, dp = dist.new_group(tp_ranks), dist.new_group(dp_ranks)
    +    for group in (tp, dp):
    +        dist.barrier(group=group)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {
    .kind = kKind,
    .title = "Only some ranks create a communicator, or in a different order",
    .explanation = kExplanation,
    .detect = detect,
    .specificity = kMechanism};

}  // namespace ddpdoctor::detectors::communicator_setup_order
