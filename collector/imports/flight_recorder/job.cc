// SPDX-License-Identifier: Apache-2.0
// Groups are joined by name and members. The first divergence in each is found from fingerprints
// alone, and only the calls around it become part of the model.
#include "collector/imports/flight_recorder/job.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>
#include <sys/stat.h>

#include "collector/model/building/build_model.h"
#include "collector/model/questions.h"
#include "collector/model/torch_evidence.h"

namespace ddpdoctor::imports {
namespace {

using model::CallState;
using model::JobModel;
using model::Rank;

constexpr std::string_view kWorldGroup = "0";
constexpr std::string_view kWorldName = "default_pg";
constexpr std::size_t kMostCalls = 400'000;  // calls of the model, about 400 MB
constexpr std::size_t kNewestPairs = 8;      // completed sends and receives of a rank that are kept

/// The number of calls kept around the divergence.
struct Window {
  std::int64_t before = 24;
  std::int64_t after = 64;
  std::int64_t newest = 8;  // used if nothing diverges
};

/// The collectives of one rank in one group, by sequence number.
struct Lane {
  const Dump* dump = nullptr;
  std::span<const DumpedCall> calls;
};

struct JoinedGroup {
  model::ProcessGroup group;
  Fingerprint members = 0;
  std::vector<Lane> lanes;
  std::vector<Lane> pairs;  // sends and receives
  std::string pair_of;      // DumpedGroup::pair_of
};

const std::vector<Rank>& members_of(const Vocabulary& vocabulary, Fingerprint print) {
  static const std::vector<Rank> kNone;
  const auto found = vocabulary.members.find(print);
  return found == vocabulary.members.end() ? kNone : *found->second;
}

/// Groups of one name with other members are other groups.
class Groups {
 public:
  explicit Groups(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  JoinedGroup& of(const DumpedGroup& group) {
    std::vector<std::size_t>& same_name = by_name_[group.name];
    const auto known = std::find_if(same_name.begin(), same_name.end(), [&](std::size_t index) {
      JoinedGroup& one = all_[index];
      return one.members == group.members || one.members == 0 || group.members == 0;
    });
    const std::size_t index = known == same_name.end() ? all_.size() : *known;
    if (known == same_name.end()) {
      same_name.push_back(index);
      all_.push_back({});
      all_.back().group.id = group.name;
    }
    JoinedGroup& joined = all_[index];
    if (joined.members == 0 && group.members != 0) {
      joined.members = group.members;
      joined.group.ranks = members_of(vocabulary_, group.members);
      if (index != same_name.front()) {
        joined.group.id = model::id_of_namesake(group.name, model::RankSet(joined.group.ranks));
      }
    }
    if (joined.group.name.empty() && group.description != "undefined") {
      joined.group.name = group.description;
    }
    if (joined.group.backend.empty()) {
      joined.group.backend = group.backend;
    }
    if (joined.pair_of.empty()) {
      joined.pair_of = group.pair_of;
    }
    return joined;
  }
  std::vector<JoinedGroup>& all() {
    return all_;
  }

 private:
  const Vocabulary& vocabulary_;
  std::vector<JoinedGroup> all_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_name_;
};

/// The calls of a dump are sorted by group; collectives precede sends and receives.
void add_lanes(const Dump& dump, Groups& groups) {
  const std::span<const DumpedCall> all(dump.calls);
  std::set<std::uint32_t> with_calls;
  for (std::size_t from = 0; from < all.size();) {
    std::size_t to = from;
    while (to < all.size() && all[to].group == all[from].group &&
           all[to].point_to_point == all[from].point_to_point) {
      ++to;
    }
    JoinedGroup& joined = groups.of(dump.groups[all[from].group]);
    (all[from].point_to_point ? joined.pairs : joined.lanes)
        .push_back({.dump = &dump, .calls = all.subspan(from, to - from)});
    with_calls.insert(all[from].group);
    from = to;
  }
  for (std::uint32_t i = 0; i < dump.groups.size(); ++i) {
    if (!with_calls.contains(i)) {
      groups.of(dump.groups[i]);
    }
  }
}

std::span<const DumpedCall> from_sequence(std::span<const DumpedCall> calls, std::int64_t first) {
  const auto start = std::lower_bound(
      calls.begin(), calls.end(), first,
      [](const DumpedCall& call, std::int64_t wanted) { return call.sequence < wanted; });
  return {start, calls.end()};
}

/// The first sequence number at which a lane differs from the reference or has not completed.
std::int64_t first_difference(std::span<const DumpedCall> lane,
                              std::span<const DumpedCall> reference) {
  std::size_t at = 0;
  for (const DumpedCall& call : lane) {
    while (at < reference.size() && reference[at].sequence < call.sequence) {
      ++at;
    }
    const bool same = at < reference.size() && reference[at].sequence == call.sequence &&
                      reference[at].what == call.what;
    // One number may belong to several calls: those of a coalesced operation.
    const bool again = at > 0 && reference[at - 1].sequence == call.sequence;
    if (call.open() || (!same && !again)) {
      return call.sequence;
    }
    at += same ? 1 : 0;
  }
  const std::int64_t last = lane.empty() ? 0 : lane.back().sequence;
  return !reference.empty() && reference.back().sequence > last
             ? last + 1
             : std::numeric_limits<std::int64_t>::max();
}

/// Nothing if all ranks made the same calls and all are completed.
std::optional<std::int64_t> first_parting(const JoinedGroup& group) {
  std::int64_t common = 1;
  const Lane* reference = nullptr;
  for (const Lane& lane : group.lanes) {
    common = std::max(common, lane.calls.front().sequence);
    if (reference == nullptr || lane.calls.back().sequence > reference->calls.back().sequence) {
      reference = &lane;
    }
  }
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Lane& lane : group.lanes) {
    first = std::min(first, first_difference(from_sequence(lane.calls, common),
                                             from_sequence(reference->calls, common)));
  }
  return first == std::numeric_limits<std::int64_t>::max() ? std::nullopt : std::optional(first);
}

/// The kept part of a lane: a range, and its newest call if that is after the range.
struct Kept {
  std::span<const DumpedCall> stretch;
  const DumpedCall* newest = nullptr;

  [[nodiscard]] std::size_t size() const {
    return stretch.size() + (newest == nullptr ? 0 : 1);
  }
};

Kept kept_of(const Lane& lane, const std::optional<std::int64_t>& parting, const Window& window) {
  const std::int64_t last = lane.calls.back().sequence;
  const std::int64_t first = parting ? *parting - window.before : last - window.newest + 1;
  const std::int64_t end = parting ? *parting + window.after : last;
  Kept kept;
  kept.stretch = from_sequence(lane.calls, first);
  while (!kept.stretch.empty() && kept.stretch.back().sequence > end) {
    kept.stretch =
        kept.stretch.first(kept.stretch.size() - from_sequence(kept.stretch, end + 1).size());
  }
  if (kept.stretch.empty() || kept.stretch.back().sequence < last) {
    kept.newest = &lane.calls.back();
  }
  return kept;
}

class Writer {
 public:
  Writer(const Vocabulary& vocabulary, JobModel& job) : vocabulary_(vocabulary), job_(job) {}

  void add(const DumpedCall& call, Rank rank, const JoinedGroup& joined) {
    const model::ProcessGroup& group = joined.group;
    const auto known = vocabulary_.calls.find(call.what);
    if (known == vocabulary_.calls.end()) {
      return;
    }
    model::CollectiveCall& out = job_.collectives.emplace_back(known->second);
    out.rank = rank;
    out.group = joined.pair_of.empty() ? group.id : joined.pair_of;
    out.sequence = call.sequence;
    out.state = call.state;
    out.time = call.created_ns > 0
                   ? std::optional(static_cast<double>(call.created_ns) * kNanosecond)
                   : std::nullopt;
    if (out.peer && (!group.ranks.empty() || group.id != kWorldGroup)) {  // peer is a group rank
      const auto index = static_cast<std::size_t>(*out.peer);
      out.peer = index < group.ranks.size() ? std::optional(group.ranks[index]) : std::nullopt;
    }
    used_.insert(call.what);
  }

  /// Loads source lines of the kept calls if the files exist on this machine and are not newer.
  void load_sources(double newest) {
    JobModel named;
    for (const Fingerprint what : used_) {
      named.collectives.push_back(vocabulary_.calls.at(what));
    }
    model::load_sources(named);
    std::erase_if(named.sources, [newest](const auto& file) {
      struct stat status{};
      return newest > 0 && (::stat(file.first.c_str(), &status) != 0 ||
                            static_cast<double>(status.st_mtim.tv_sec) > newest);
    });
    job_.sources = std::move(named.sources);
  }

 private:
  const Vocabulary& vocabulary_;
  JobModel& job_;
  std::set<Fingerprint> used_;
};

using Partings = std::vector<std::optional<std::int64_t>>;

Window window_for(const std::vector<JoinedGroup>& groups, const Partings& partings) {
  Window window;
  while (window.before > 2) {
    std::size_t calls = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const Lane& lane : groups[i].lanes) {
        calls += kept_of(lane, partings[i], window).size();
      }
    }
    if (calls <= kMostCalls) {
      break;
    }
    window.before /= 2;
    window.after /= 2;
    window.newest = std::max<std::int64_t>(1, window.newest / 2);
  }
  return window;
}

void add_pairs(const JoinedGroup& group, Writer& writer) {
  for (const Lane& lane : group.pairs) {
    const std::size_t recent = lane.calls.size() - std::min(lane.calls.size(), kNewestPairs);
    std::size_t opened = 0;
    for (std::size_t i = 0; i < lane.calls.size(); ++i) {
      if (i >= recent || (lane.calls[i].open() && ++opened <= kNewestPairs * kNewestPairs)) {
        writer.add(lane.calls[i], lane.dump->rank, group);
      }
    }
  }
}

std::size_t add_calls(std::vector<JoinedGroup>& groups, Writer& writer) {
  Partings partings;
  for (const JoinedGroup& group : groups) {
    partings.push_back(group.lanes.empty() ? std::nullopt : first_parting(group));
  }
  const Window window = window_for(groups, partings);
  std::size_t total = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const Lane& lane : groups[i].lanes) {
      const Kept kept = kept_of(lane, partings[i], window);
      for (const DumpedCall& call : kept.stretch) {
        writer.add(call, lane.dump->rank, groups[i]);
      }
      if (kept.newest != nullptr) {
        writer.add(*kept.newest, lane.dump->rank, groups[i]);
      }
      total += lane.calls.size();
    }
    add_pairs(groups[i], writer);
  }
  return total;
}

int world_size_of(const std::vector<Dump>& dumps, const std::vector<JoinedGroup>& groups) {
  Rank highest = dumps.empty() ? 0 : dumps.back().rank;
  for (const JoinedGroup& group : groups) {
    for (const Rank rank : group.group.ranks) {
      highest = std::max(highest, rank);
    }
  }
  return highest + 1;
}

}  // namespace

JobModel job_of_dumps(const std::vector<Dump>& dumps, const Vocabulary& vocabulary) {
  JobModel job;
  Groups groups(vocabulary);
  std::int64_t newest = 0;
  for (const Dump& dump : dumps) {
    if (!dump.cut && !dump.disputed) {  // a rank without its newest calls would seem to be behind
      add_lanes(dump, groups);
    }
    newest = std::max(newest, dump.newest_ns);
    job.facts.push_back({.rank = dump.rank,
                         .pid = {},
                         .kind = "flight-recorder",
                         .fields = {{"calls", static_cast<std::int64_t>(dump.calls.size())},
                                    {"cut", dump.cut || dump.disputed},
                                    {"version", dump.version}}});
  }
  job.world_size = world_size_of(dumps, groups.all());
  Writer writer(vocabulary, job);
  add_calls(groups.all(), writer);
  writer.load_sources(static_cast<double>(newest) * kNanosecond);
  for (JoinedGroup& group : groups.all()) {
    if (group.group.name.empty() && group.group.id == kWorldGroup) {
      group.group.name = kWorldName;
    }
    if (group.pair_of.empty()) {
      job.groups.push_back(std::move(group.group));
    }
  }
  model::complete_groups(job);
  judge_progress(dumps, job);
  tell_coverage(dumps, job);
  return job;
}

}  // namespace ddpdoctor::imports
