// SPDX-License-Identifier: Apache-2.0
// store-wait: ranks wait in the store (TCPStore, FileStore) for a key that no rank sets: a
// forgotten set, a key spelled differently, a set that only runs under a condition.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/polled_store.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/store_keys.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::store_wait {
namespace {

constexpr std::string_view kKind = "store-wait";
constexpr std::size_t kLongestHeader = 80;

/// Ranks in the user's own store calls, by key. Torch's own use of the store (init, new_group) has
/// a different activity.
std::map<std::string, model::RankSet> waiters_by_key(const graph::Examination& examination) {
  std::map<std::string, model::RankSet> out;
  for (const graph::Standing& standing : examination.standings) {
    if (standing.activity == graph::Activity::kStore && standing.user.known()) {
      out[awaited_key(examination.job, standing)].insert(standing.rank);
    }
  }
  return out;
}

/// Ranks that have exited or are unobserved: one of them may be the one that sets the key.
bool somebody_is_missing(const graph::Examination& examination) {
  using enum graph::Activity;
  return std::any_of(examination.standings.begin(), examination.standings.end(),
                     [](const graph::Standing& standing) {
                       return standing.activity == kUnobserved || standing.activity == kAbsent ||
                              standing.activity == kDead || standing.activity == kExited;
                     });
}

/// The rank that should set the key according to the capture.
model::RankSet named_setters(const graph::Examination& examination, const model::RankSet& waiters) {
  constexpr std::string_view kRank = "rank:";
  model::RankSet out;
  for (const model::Rank rank : waiters) {
    const graph::Standing* standing = examination.standing(rank);
    const model::WaitsOn* wait = standing == nullptr || standing->thread == nullptr
                                     ? nullptr
                                     : waits_on(*standing->thread, "store-key");
    if (wait == nullptr || !wait->target.starts_with(kRank)) {
      continue;
    }
    const std::string number = wait->target.substr(kRank.size());
    model::Rank named = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), named);
    if (error == std::errc() && end == number.data() + number.size() &&
        examination.standing(named) != nullptr && !waiters.contains(named)) {
      out.insert(named);
    }
  }
  return out;
}

/// The line at which the first of these ranks is; other words where no stack shows it.
std::string line_or(const graph::Examination& examination, const model::RankSet& ranks,
                    std::string_view otherwise) {
  const graph::Standing* standing = examination.standing(ranks.front());
  return standing == nullptr || !standing->user.known() ? std::string(otherwise)
                                                        : line_of(standing->user);
}

Finding named_do_not_set(const graph::Examination& examination, const std::string& key,
                         const model::RankSet& waiters, const model::RankSet& setters,
                         Confidence sure) {
  Finding finding;
  finding.kind = kKind;
  finding.confidence = sure;
  finding.culprits = setters;
  add_where_accused_stand(examination, finding);
  add_waiting(examination, finding);
  finding.waiting = finding.waiting.united(waiters).minus(setters);
  const std::string name = key.empty() ? std::string("a key") : fmt::format("the key {}", key);
  finding.summary =
      fmt::format("{} not set {}; {} for it in the store", ranks_do(setters, "has", "have"), name,
                  ranks_do(waiters, "is waiting", "are waiting"));
  finding.fix = fmt::format("Set {} on {} before {}, or remove the wait ({}).",
                            key.empty() ? "that key" : name, said(setters),
                            line_or(examination, setters, "it continues"),
                            line_or(examination, waiters, "line unknown"));
  add_whereabouts(finding, examination, waiters.united(setters));
  return finding;
}

/// Observed ranks that are not in the store and wait for no rank: one of them may still set the
/// key.
model::RankSet ranks_elsewhere(const graph::Examination& examination) {
  return ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity != graph::Activity::kStore && !standing.waits_for_ranks();
  });
}

/// A rank that is at work sets the key when its work is done, as far as anyone can see: that is a
/// long phase.
bool may_set_it_yet(const graph::Examination& examination, const model::RankSet& waiters,
                    const model::RankSet& setters) {
  const model::RankSet at_work = working_ranks(examination).minus(waiters);
  return setters.empty() ? !at_work.empty() : setters.minus(at_work).empty();
}

/// The program sets and deletes the key, and most ranks have gone on: a rank that comes after the
/// deletion waits forever. Which rank is at fault is not known.
std::optional<Finding> came_too_late(const graph::Examination& examination, const std::string& key,
                                     const model::RankSet& waiters, Confidence sure) {
  const auto set_at = key_setter(examination.job, key);
  const auto deleted_at = remover_by_string(examination.job, key);
  const model::RankSet all = model::all_ranks(examination.job);
  if (!set_at || !deleted_at || all.size() <= 2 * waiters.size() ||
      !ranks_elsewhere(examination).empty()) {
    return std::nullopt;
  }
  const graph::Standing* first = examination.standing(waiters.front());
  const std::string written = as_written(examination.job, key, *first);
  Finding finding;
  finding.kind = kKind;
  // Two facts: these ranks wait for the key, and no other rank can still set it.
  finding.confidence = sure == Confidence::kLikely ? Confidence::kCertain : sure;
  finding.waiting = waiting_ranks(examination).united(waiters);
  finding.summary = fmt::format(
      "{} for the key {} in the store ({}), which does not exist; the program deletes this key "
      "({})",
      ranks_do(waiters, "is waiting", "are waiting"), key, place(first->user), place(*deleted_at));
  finding.locations = {location(first->user, waiters,
                                waiting_here(examination.job, waiters, "for the key " + written)),
                       location(*deleted_at, {}, "the key is deleted here"),
                       location(set_at->where, {}, "the key is set here")};
  finding.fix = fmt::format(
      "Delete the key ({}) only after all {} ranks have read it: count them with store.add(), or "
      "call barrier() first.",
      line_of(*deleted_at), all.size());
  add_whereabouts(finding, examination, all);
  finding.details["key"] = key;
  return finding;
}

Finding nobody_sets(const graph::Examination& examination, const std::string& key,
                    const model::RankSet& waiters, Confidence sure) {
  Finding finding;
  finding.kind = kKind;
  const auto set_at = key_setter(examination.job, key);
  model::RankSet elsewhere = ranks_elsewhere(examination);
  finding.confidence = sure;
  if (elsewhere.empty()) {  // who has gone past the line waits for those who need the key
    elsewhere = model::all_ranks(examination.job).minus(waiters);
    const bool nobody_can = set_at && !elsewhere.empty() && sure == Confidence::kLikely;
    finding.confidence = nobody_can ? Confidence::kCertain : sure;
  }
  finding.culprits = set_at && !elsewhere.empty() ? elsewhere : waiters;
  const graph::Standing* first = examination.standing(waiters.front());
  const std::string written = as_written(examination.job, key, *first);
  const std::string name = key.empty() ? std::string("a key")
                           : written == key
                               ? fmt::format("the key {}", key)
                               : fmt::format("the key {} ({} in the store)", written, key);
  const std::string place_of_wait = place(first->user);
  finding.locations.push_back(
      location(first->user, waiters, waiting_here(examination.job, waiters, "for " + name)));
  if (set_at) {
    finding.locations.push_back(
        location(set_at->where, elsewhere,
                 fmt::format("the key {} is set here; this line has not run for it", written)));
    std::rotate(finding.locations.begin(), finding.locations.begin() + (elsewhere.empty() ? 0 : 1),
                finding.locations.end());
    for (const model::CallSite& guard : set_at->guards) {
      finding.locations.push_back(location(guard, {}, "this test decides whether it is set"));
    }
  }
  finding.waiting = waiting_ranks(examination).united(waiters).minus(finding.culprits);
  finding.summary =
      fmt::format("{} {} in the store ({}) for {}, which no rank has set", said(waiters),
                  waiters.size() == 1 ? "is waiting" : "are waiting", place_of_wait, name);
  finding.fix =
      set_at
          ? fmt::format(
                "Move the line that sets the key {} ({}) before the wait of the other ranks.",
                written, line_of(set_at->where))
          : fmt::format(
                "Set {} on one rank before this line, or remove the wait. Compare how the key is "
                "spelled in both places.",
                name);
  add_whereabouts(finding, examination, waiters.united(elsewhere));
  if (!key.empty()) {
    finding.details["key"] = key;
  }
  return finding;
}

/// A store client makes one call at a time: a thread that sets a key waits for another thread of
/// its process that waits for one.
std::optional<Finding> client_is_taken(const graph::Examination& examination, model::Rank rank,
                                       Confidence sure) {
  const graph::Standing* standing = examination.standing(rank);
  const bool sets = model::has_native_frame(*standing->thread, "TCPStore::set") ||
                    model::has_native_frame(*standing->thread, "TCPStore::add");
  const auto& threads = standing->process->threads;
  const auto other = std::find_if(threads.begin(), threads.end(), [&](const auto& thread) {
    return &thread != standing->thread && model::has_native_frame(thread, "TCPStore::doWait") &&
           own_user_frame(thread) != nullptr;
  });
  if (!sets || other == threads.end()) {
    return std::nullopt;
  }
  const model::CallSite taken = model::call_site(*own_user_frame(*other));
  Finding finding;
  finding.kind = kKind;
  finding.confidence = sure;
  finding.culprits = model::RankSet({rank});
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary = fmt::format(
      "rank {} cannot set a key ({}) while its thread {} is waiting in the same store ({})", rank,
      place(standing->user), other->name, place(taken));
  finding.locations = {
      location(standing->user, finding.culprits, fmt::format("rank {} sets a key here", rank)),
      location(taken, finding.culprits, "a second thread of this rank uses the store here")};
  finding.fix =
      "Give the waiting thread its own store (store.clone(), or a TCPStore with is_master=False): "
      "a "
      "store handles one call at a time.";
  add_whereabouts(finding, examination, finding.culprits);
  return finding;
}

/// All ranks poll the store, and none is left that would change the answer. Another program may.
std::optional<Finding> all_poll(const graph::Examination& examination, Confidence sure) {
  std::optional<PolledStore> first;
  Finding finding;
  for (const graph::Standing& standing : examination.standings) {
    auto polled = polled_store(examination.job, standing);
    if (!polled) {
      return std::nullopt;
    }
    finding.culprits.insert(standing.rank);
    first = first ? first : std::move(polled);
  }
  if (!first || !working_ranks(examination).empty()) {
    return std::nullopt;
  }
  finding.kind = kKind;
  finding.confidence = at_most(sure, Confidence::kPossible);
  finding.summary = fmt::format(
      "{} poll the store in the loop `{}` ({}); every rank that could change the answer is "
      "waiting, too",
      said(finding.culprits), base::elide(first->header, kLongestHeader), place(first->loop));
  finding.locations = {
      location(first->loop, finding.culprits, waiting_here(examination.job, finding.culprits)),
      location(first->asks, {}, "polls the store here")};
  finding.fix =
      "Print the value that the loop reads: it never matches. If a counter can pass the value, "
      "compare with >= instead of ==. Add a timeout that raises.";
  add_whereabouts(finding, examination, finding.culprits);
  return finding;
}

Findings detect(const graph::Examination& examination) {
  const auto sure = stuck(examination);
  if (!sure || somebody_is_missing(examination)) {
    return {};
  }
  Findings findings;
  if (auto polled = all_poll(examination, *sure)) {
    findings.push_back(std::move(*polled));
  }
  for (const auto& [key, waiters] : waiters_by_key(examination)) {
    if (auto taken = client_is_taken(examination, waiters.front(), *sure)) {
      findings.push_back(std::move(*taken));
      continue;
    }
    const model::RankSet setters = named_setters(examination, waiters);
    if (may_set_it_yet(examination, waiters, setters)) {
      continue;
    }
    if (auto late =
            setters.empty() ? came_too_late(examination, key, waiters, *sure) : std::nullopt) {
      findings.push_back(std::move(*late));
      continue;
    }
    findings.push_back(setters.empty()
                           ? nobody_sets(examination, key, waiters, *sure)
                           : named_do_not_set(examination, key, waiters, setters, *sure));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Ranks wait in the store for a key that no rank sets",
    .explanation =
        R"(What you see: ranks are in store.get or store.wait until the store's timeout (30 minutes and more).

Why: get waits until the key exists. The rank that should set it took a different branch, spells the key differently, or is itself
waiting for the others.

How ddpdoctor knows: from the frames of the store and the key in their arguments; your source shows where the key is set. While a
rank outside the store is at work, it may still set the key: long-phase reports that wait.

Fix:
    + if rank == 0:
    +     store.set("plan/epoch-0", plan)
      plan = store.get("plan/epoch-0"))",
    .detect = detect,
};

}  // namespace ddpdoctor::detectors::store_wait
