// SPDX-License-Identifier: Apache-2.0
// What torchfrtrace (torch 2.13) wants of a dump: every group that a rank calls in has its members,
// operations have names that it knows, and entries of all ranks begin at the same call.
#include "collector/imports/flight_recorder/write.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collector/imports/documents/pickle_write.h"
#include "collector/imports/flight_recorder/sizes.h"

namespace ddpdoctor::imports {
namespace {

using model::CallState;
using model::CollectiveCall;
using model::JobModel;
using model::ProcessGroup;
using model::Rank;
using std::string_view;

constexpr string_view kVersion = "2.10";
constexpr string_view kUndescribed = "undefined";
constexpr double kNanoseconds = 1e9;

/// Backends that torchfrtrace knows; calls of any other are written as gloo's.
constexpr std::array<string_view, 8> kBackends = {"nccl", "ncclx", "xccl", "gloo",
                                                  "rccl", "rcclx", "mccl", "hccl"};

/// PyTorch's spelling → the recorder's, for every operation that torchfrtrace knows.
constexpr std::array<std::pair<string_view, string_view>, 18> kNames = {{
    {"all_gather", "all_gather"},
    {"all_gather_coalesced", "ALLGATHER_coalesced"},
    {"all_gather_into_tensor", "_all_gather_base"},
    {"all_gather_into_tensor_coalesced", "all_gather_into_tensor_coalesced"},
    {"all_reduce", "all_reduce"},
    {"all_reduce_coalesced", "allreduce_coalesced"},
    {"all_to_all", "all_to_all"},
    {"all_to_all_single", "all_to_all"},
    {"barrier", "barrier"},
    {"broadcast", "broadcast"},
    {"gather", "gather"},
    {"monitored_barrier", "barrier"},
    {"reduce", "reduce"},
    {"reduce_scatter", "reduce_scatter"},
    {"reduce_scatter_tensor", "_reduce_scatter_base"},
    {"reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_coalesced"},
    {"scatter", "scatter"},
    {"split", "split"},
}};

string_view name_of(string_view operation) {
  const auto* const found = std::find_if(
      kNames.begin(), kNames.end(), [operation](const auto& n) { return n.first == operation; });
  return found == kNames.end() ? string_view() : found->second;
}

std::int64_t nanoseconds(double seconds) {
  constexpr double kMost = 9e18;
  const double count = std::floor(seconds * kNanoseconds);
  return count > 0 && count < kMost ? static_cast<std::int64_t>(count) : 0;
}

/// The calls of each rank that can be told, in the rank's order.
class Told {
 public:
  explicit Told(const JobModel& job) {
    for (const CollectiveCall& call : job.collectives) {
      add(call);
    }
    if (!job.history_complete) {
      begin_alike();
    }
    for (auto& [rank, calls] : calls_) {
      std::stable_sort(calls.begin(), calls.end(),
                       [](const CollectiveCall* a, const CollectiveCall* b) {
                         return a->time.value_or(0) < b->time.value_or(0);
                       });
    }
  }

  [[nodiscard]] const std::map<Rank, std::vector<const CollectiveCall*>>& calls() const {
    return calls_;
  }
  [[nodiscard]] std::vector<std::string> left_out() const {
    std::vector<std::string> out;
    if (messages_ > 0) {
      out.push_back(fmt::format("{} sends and receives are left out", messages_));
    }
    for (const auto& [operation, count] : nameless_) {
      out.push_back(fmt::format("{} calls of {} are left out: torch's recorder has no name for it",
                                count, operation));
    }
    return out;
  }

 private:
  void add(const CollectiveCall& call) {
    if (call.point_to_point) {
      ++messages_;
    } else if (name_of(call.operation).empty()) {
      ++nameless_[call.operation];
    } else {
      calls_[call.rank].push_back(&call);
    }
  }

  /// What one rank has forgotten others must not tell: it would seem never to have called it.
  void begin_alike() {
    std::map<std::pair<string_view, Rank>, std::int64_t> oldest;
    for (const auto& [rank, calls] : calls_) {
      for (const CollectiveCall* call : calls) {
        auto [known, added] = oldest.try_emplace({call->group, rank}, call->sequence);
        known->second = std::min(known->second, call->sequence);
      }
    }
    std::map<string_view, std::int64_t> first;
    for (const auto& [member, sequence] : oldest) {
      auto [known, added] = first.try_emplace(member.first, sequence);
      known->second = std::max(known->second, sequence);
    }
    for (auto& [rank, calls] : calls_) {
      std::erase_if(calls, [&](const CollectiveCall* call) {
        return call->sequence < first.at(call->group);
      });
    }
  }

  std::map<Rank, std::vector<const CollectiveCall*>> calls_;
  std::map<std::string, std::size_t> nameless_;
  std::size_t messages_ = 0;
};

/// A group with the members that torchfrtrace wants to know.
struct KnownGroup {
  std::string description;
  std::string backend;
  std::vector<Rank> ranks;
  std::size_t index = 0;
  std::string listed{};         // the ranks as a dump says them
  std::vector<Rank> members{};  // the ranks in order
};

std::map<string_view, KnownGroup> groups_of(const JobModel& job, const Told& told) {
  std::map<string_view, KnownGroup> out;
  for (const ProcessGroup& group : job.groups) {
    const bool invented = group.name.empty() || group.name == "group " + group.id;
    const bool known =
        std::find(kBackends.begin(), kBackends.end(), group.backend) != kBackends.end();
    out.try_emplace(group.id,
                    KnownGroup{.description = invented ? std::string(kUndescribed) : group.name,
                               .backend = known ? group.backend : "gloo",
                               .ranks = group.ranks,
                               .index = out.size()});
  }
  std::map<string_view, std::set<Rank>> callers;
  for (const auto& [rank, calls] : told.calls()) {
    for (const CollectiveCall* call : calls) {
      callers[call->group].insert(rank);
    }
  }
  for (const auto& [id, ranks] : callers) {
    KnownGroup& group = out.try_emplace(id, KnownGroup{.description = std::string(kUndescribed),
                                                       .backend = "gloo",
                                                       .ranks = {},
                                                       .index = out.size()})
                            .first->second;
    if (group.ranks.empty()) {  // unknown: at least those that call in it
      group.ranks.assign(ranks.begin(), ranks.end());
    }
  }
  for (auto& [id, group] : out) {
    group.listed = fmt::format("[{}]", fmt::join(group.ranks, ", "));
    group.members = group.ranks;
    std::sort(group.members.begin(), group.members.end());
  }
  return out;
}

bool is_member(const KnownGroup& group, Rank rank) {
  return std::binary_search(group.members.begin(), group.members.end(), rank);
}

class DumpWriter {
 public:
  explicit DumpWriter(const std::map<string_view, KnownGroup>& groups) : groups_(groups) {}

  std::string dump(Rank rank, const std::vector<const CollectiveCall*>& calls) {
    out_.open_dict();
    say("version", kVersion);
    say("comm_lib_version", "");
    out_.text("pg_config");
    out_.open_dict();
    for (const auto& [id, group] : groups_) {
      if (is_member(group, rank) || called_in(id, calls)) {
        write_group(id, group);
      }
    }
    out_.close_dict();
    write_status(calls);
    out_.text("entries");
    out_.open_list();
    std::int64_t index = 0;
    for (const CollectiveCall* call : calls) {
      write_entry(*call, index++);
    }
    out_.close_list();
    out_.close_dict();
    return out_.finish();
  }

 private:
  static bool called_in(string_view group, const std::vector<const CollectiveCall*>& calls) {
    return std::any_of(calls.begin(), calls.end(),
                       [group](const CollectiveCall* call) { return call->group == group; });
  }

  void say(string_view key, string_view value) {
    out_.text(key);
    out_.text(value);
  }
  void say(string_view key, std::int64_t value) {
    out_.text(key);
    out_.whole(value);
  }

  void write_group(string_view id, const KnownGroup& group) {
    out_.text(id);
    out_.open_dict();
    say("name", id);
    say("desc", group.description);
    say("ranks", group.listed);
    out_.close_dict();
  }

  void write_status(const std::vector<const CollectiveCall*>& calls) {
    struct Newest {
      std::int64_t enqueued = -1;
      std::int64_t started = -1;
      std::int64_t completed = -1;
    };
    std::map<string_view, Newest> status;
    for (const CollectiveCall* call : calls) {
      Newest& newest = status[call->group];
      newest.enqueued = std::max(newest.enqueued, call->sequence);
      if (call->state == CallState::kStarted || model::is_over(call->state)) {
        newest.started = std::max(newest.started, call->sequence);
      }
      if (call->state == CallState::kCompleted) {
        newest.completed = std::max(newest.completed, call->sequence);
      }
    }
    out_.text("pg_status");
    out_.open_dict();
    for (const auto& [group, newest] : status) {
      out_.text(group);
      out_.open_dict();
      say("last_enqueued_collective", newest.enqueued);
      say("last_started_collective", newest.started);
      say("last_completed_collective", newest.completed);
      out_.close_dict();
    }
    out_.close_dict();
  }

  void write_sizes(string_view key, string_view types_key, const Sizes& sizes, string_view dtype) {
    out_.text(key);
    out_.open_list();
    for (const auto& shape : sizes) {
      out_.open_list();
      for (const std::int64_t extent : shape) {
        out_.whole(extent);
      }
      out_.close_list();
    }
    out_.close_list();
    out_.text(types_key);
    out_.open_list();
    if (!dtype.empty() && !sizes.empty()) {
      out_.text(dtype);
    }
    out_.close_list();
  }

  void write_frames(const CollectiveCall& call) {
    out_.text("frames");
    out_.open_list();
    const auto frame = [this](const model::CallSite& site) {
      out_.open_dict();
      say("name", site.function);
      say("filename", site.file);
      say("line", site.line);
      out_.close_dict();
    };
    if (call.callers.empty() && call.call_site.known()) {
      frame(call.call_site);
    }
    for (const model::CallSite& site : call.callers) {
      frame(site);
    }
    out_.close_list();
  }

  void write_time(string_view key, const std::optional<double>& seconds) {
    out_.text(key);
    if (const std::int64_t count = nanoseconds(seconds.value_or(0)); count > 0) {
      out_.whole(count);
    } else {
      out_.none();
    }
  }

  void write_entry(const CollectiveCall& call, std::int64_t index) {
    const KnownGroup& group = groups_.at(call.group);
    const bool completed = call.state == CallState::kCompleted;
    out_.open_dict();
    write_frames(call);
    say("record_id", index);
    say("pg_id", static_cast<std::int64_t>(group.index));
    out_.text("process_group");
    out_.text(call.group);
    out_.text(group.description);
    out_.pair();
    say("collective_seq_id", call.sequence);
    say("p2p_seq_id", 0);
    say("op_id", call.sequence);
    say("profiling_name", fmt::format("{}:{}", group.backend, name_of(call.operation)));
    say("time_created_ns", nanoseconds(call.time.value_or(0)));
    const SizesOfCall sizes = sizes_of(call, group.ranks.size());
    const std::string dtype = recorded_dtype(call.dtype);
    write_sizes("input_sizes", "input_dtypes", sizes.input, dtype);
    write_sizes("output_sizes", "output_dtypes", sizes.output, dtype);
    const bool started =
        call.state == CallState::kStarted || call.state == CallState::kFailed;  // no word for it
    say("state", completed ? "completed" : started ? "started" : "scheduled");
    out_.text("time_discovered_started_ns");
    out_.none();
    write_time("time_discovered_completed_ns", completed ? call.end_time : std::nullopt);
    out_.text("retired");
    out_.flag(model::is_over(call.state));
    out_.text("is_p2p");
    out_.flag(false);
    out_.close_dict();
  }

  const std::map<string_view, KnownGroup>& groups_;
  PickleWriter out_;
};

}  // namespace

base::Result<WrittenDumps> write_flight_recorder(const JobModel& job) {
  const Told told(job);
  WrittenDumps out{.files = {}, .seen = 0, .left_out = told.left_out()};
  if (told.calls().empty()) {
    return base::failure("there are no dumps to write: no collective call was recorded",
                         "record the job from its start: ddpdoctor run -- CMD");
  }
  if (!job.observations.empty()) {
    out.seen = job.observations.back().time;
  }
  std::set<Rank> ranks;
  for (const auto& [rank, calls] : told.calls()) {
    ranks.insert(rank);
  }
  if (job.history_complete && !job.observations.empty()) {  // who called nothing, called nothing
    for (const model::Process& process : job.observations.back().processes) {
      if (process.rank && process.role == model::Role::kRank &&
          !job.coverage.unobserved_ranks.contains(*process.rank)) {
        ranks.insert(*process.rank);
      }
    }
  }
  const auto groups = groups_of(job, told);
  const std::vector<const CollectiveCall*> none;
  for (const Rank rank : ranks) {
    const auto calls = told.calls().find(rank);
    out.files.push_back({.name = fmt::format("rank_{}", rank),
                         .bytes = DumpWriter(groups).dump(
                             rank, calls == told.calls().end() ? none : calls->second)});
  }
  return out;
}

}  // namespace ddpdoctor::imports
