// SPDX-License-Identifier: Apache-2.0
// torch's store-based barrier waits until the number of joined ranks is exactly the world size: if
// processes of a different job or of an earlier run join, too, it never returns, and no rank is
// missing.
#include "collector/detectors/evidence/told_rendezvous.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/announced_twice.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/roll_calls.h"
#include "collector/detectors/evidence/told_addresses.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kRendezvousKind = "rendezvous-incomplete";
constexpr std::string_view kWaiting = "Waiting in store based barrier";

std::optional<int> joined_count_at(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && count >= 0 && count < model::kMaxWorldSize ? std::optional(count)
                                                                            : std::nullopt;
}

std::optional<int> joined_count_behind(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  return at == line.npos ? std::nullopt : joined_count_at(line.substr(at + word.size()));
}

/// "3/4 clients joined", "(world_size=4, num_workers_joined=3", "(world_size=4, worker_count=3": 4.
std::optional<int> world_in(std::string_view line) {
  const std::size_t joined = line.find(" clients joined");
  const std::size_t slash = joined == line.npos ? line.npos : line.rfind('/', joined);
  const auto size = joined_count_behind(line, "world_size=");
  return size || slash == line.npos ? size : joined_count_at(line.substr(slash + 1));
}

/// 3 in these examples.
std::optional<int> joined_in(std::string_view line) {
  const auto workers = joined_count_behind(line, "num_workers_joined=");
  const auto older = workers ? workers : joined_count_behind(line, "worker_count=");
  const std::size_t joined = line.find(" clients joined");
  const std::size_t slash = joined == line.npos ? line.npos : line.rfind('/', joined);
  if (older || slash == line.npos) {
    return older;
  }
  const std::size_t space = line.rfind(' ', slash);
  return joined_count_at(line.substr(space == line.npos ? 0 : space + 1));
}

/// The author of the store-based barrier's message: "on rank: 2, for key", "on rank 2, for key",
/// "for rank: 2, key".
std::optional<model::Rank> author_in(std::string_view line) {
  const std::size_t key = line.find("store_based_barrier_key");
  const std::size_t at = key == line.npos ? line.npos : line.rfind("rank", key);
  std::string_view rest = at == line.npos ? std::string_view() : line.substr(at + 4);
  rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
  return joined_count_at(rest);
}

/// All messages of the rendezvous.
struct ToldCounts {
  std::optional<int> world;
  int joined = 0;
  model::RankSet there;
  bool gave_up = false;  // some message says that the wait has ended
  std::vector<Evidence> surplus;
  model::CallSite place;  // the user's line in the first of their tracebacks

  void read(const std::string& line, std::optional<model::Rank> named) {
    const auto size = world_in(line);
    const auto count = joined_in(line).value_or(0);
    const auto author = author_in(line);
    const auto rank = author ? author : named;
    world = world ? world : size;
    joined = std::max(joined, count);
    there = rank ? there.united({*rank}) : there;
    gave_up = gave_up || line.find(kWaiting) == std::string::npos;
    if (size && count > *size && surplus.size() < 2) {
      surplus.push_back({.rank = rank, .text = "log: " + line});
    }
  }
  /// Members of the world that wrote nothing; none if some of those that joined wrote nothing, or
  /// a message comes from a rank outside the world.
  [[nodiscard]] model::RankSet absent() const {
    model::RankSet out;
    const int size = world.value_or(0);
    const bool all_spoke = !there.empty() && std::cmp_greater_equal(there.size(), joined);
    const bool closed = all_spoke && outside().empty();
    for (model::Rank rank = 0; closed && rank < size; ++rank) {
      if (!there.contains(rank)) {
        out.insert(rank);
      }
    }
    return out;
  }
  /// Ranks that a world of this size does not have.
  [[nodiscard]] model::RankSet outside() const {
    model::RankSet out;
    for (const model::Rank rank : there) {
      out = rank >= world.value_or(model::kMaxWorldSize) ? out.united({rank}) : out;
    }
    return out;
  }
};

/// A rank that still waits says how many have joined: too many is final, too few is not.
void read_surplus(const model::JobModel& job, ToldCounts& told) {
  for (const LogStream& stream : job.logs.empty() ? std::vector<LogStream>() : log_streams(job)) {
    for (const LogLine& line : stream) {
      if (line.text.find(kWaiting) != line.text.npos &&
          joined_in(line.text).value_or(0) > world_in(line.text).value_or(model::kMaxWorldSize)) {
        told.read(std::string(base::trim(line.text)), line.rank);
      }
    }
  }
}

/// Lightning's ranks announce themselves before the rendezvous. A node has a log of its own.
Findings not_announced(const model::JobModel& job) {
  const auto few = announced_too_few(job);
  if (!few) {
    return {};
  }
  Finding finding;
  finding.kind = kRendezvousKind;
  finding.confidence = Confidence::kPossible;
  finding.waiting = few->there;
  finding.culprits = few->never;
  finding.summary =
      fmt::format("{} announced themselves; {} did not, and the rendezvous waits for all",
                  said(few->there), said(few->never));
  finding.evidence.push_back(
      {.rank = {}, .text = "log: " + base::elide(base::printable(base::trim(few->line)), 200)});
  finding.fix = fmt::format(
      "Start {}, or lower `devices` and `num_nodes`. If a different node runs them, read its "
      "output.",
      said(few->never));
  return {std::move(finding)};
}

/// The messages are of new_group: the rendezvous is complete.
bool waits_in_new_group(const model::JobModel& job) {
  const auto calls = model::facts(job, model::kRollCall);
  return std::any_of(calls.begin(), calls.end(),
                     [](const model::Fact* fact) { return is_of_new_group(*fact); });
}

bool barrier_completed(const model::JobModel& job) {
  return std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return log.text.find("Completed store-based barrier") != std::string::npos;
  });
}

ToldCounts counts_of(const model::JobModel& job) {
  ToldCounts told;
  for (const Sighting& sighting : sightings(job, kRendezvousKind)) {
    told.read(sighting.line, sighting.rank);
    told.place = told.place.known() ? told.place : sighting.place;
  }
  read_surplus(job, told);
  return told;
}

/// The job passed this rendezvous.
bool is_over(const graph::Examination& examination) {
  return barrier_completed(examination.job) || output_goes_on(examination.job) ||
         outlived(examination, std::nullopt);
}

/// More ranks joined than the world has, and the job did not continue: what all of them wrote,
/// without a summary and a fix.
std::optional<Finding> surplus_of(const graph::Examination& examination, const ToldCounts& told,
                                  std::string_view kind) {
  if (told.surplus.empty() || is_over(examination)) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kLikely;
  finding.waiting = told.there;
  finding.evidence = told.surplus;
  return finding;
}

}  // namespace

std::optional<Finding> too_many_joined(const graph::Examination& examination) {
  const ToldCounts told = counts_of(examination.job);
  auto finding = surplus_of(examination, told, "duplicate-rank");
  if (!finding || !told.outside().empty() || waits_in_new_group(examination.job)) {
    return std::nullopt;
  }
  finding->summary = fmt::format(
      "{} ranks joined the rendezvous of a world of {}, so several have one number; {} {} forever",
      told.joined, *told.world, told.there.empty() ? "all" : said(told.there),
      told.there.size() == 1 ? "waits" : "wait");
  finding->fix =
      "End other and earlier jobs that use this address, or set a different MASTER_PORT for each "
      "job. Start the launcher once per node.";
  finding->details["joined"] = static_cast<std::int64_t>(told.joined);
  finding->details["world_size"] = static_cast<std::int64_t>(*told.world);
  return finding;
}

std::optional<Finding> rank_outside_world(const graph::Examination& examination) {
  const ToldCounts told = counts_of(examination.job);
  const model::RankSet outside = told.outside();
  auto finding = surplus_of(examination, told, "environment-differs");
  if (!finding || outside.empty()) {
    return std::nullopt;
  }
  if (told.place.known()) {
    finding->locations.push_back(location(told.place, {}, "the group is made here"));
  }
  finding->summary = fmt::format(
      "{} joined a world of {}: the ranks and world_size in init_process_group do not agree",
      said(outside), *told.world);
  finding->fix = fmt::format(
      "{} processes joined. Start as many as world_size says: if each launched process spawns one "
      "per GPU, launch one per node.",
      told.joined);
  return finding;
}

Findings rendezvous_told_by_logs(const graph::Examination& examination) {
  if (addresses_differ(examination.job) || waits_in_new_group(examination.job)) {
    return {};  // environment-differs, missing-rank or new-group-subset reports it
  }
  Findings findings = findings_from_text(examination, kRendezvousKind);
  const ToldCounts told = counts_of(examination.job);
  if (!told.surplus.empty()) {
    return {};  // duplicate-rank or environment-differs reports it
  }
  if (findings.empty() && examination.standings.empty()) {
    return not_announced(examination.job);
  }
  if (findings.empty() || (!told.gave_up && barrier_completed(examination.job))) {
    return {};
  }
  for (Finding& finding : findings) {
    finding.waiting = told.there;
    finding.culprits = told.absent();
  }
  return findings;
}

}  // namespace ddpdoctor::detectors
