// SPDX-License-Identifier: Apache-2.0
// What torchfrtrace (torch 2.13) expects of a dump: the members of every group in which a rank
// makes calls, known operation names, and entries of all ranks that begin at the same call.
#include "collector/imports/flight_recorder/write.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collector/imports/documents/pickle_write.h"
#include "collector/imports/flight_recorder/sizes.h"
#include "collector/imports/flight_recorder/told.h"

namespace ddpdoctor::imports {
namespace {

using model::CallState;
using model::CollectiveCall;
using model::JobModel;
using model::Rank;
using std::string_view;

constexpr string_view kVersion = "2.10";
constexpr double kNanoseconds = 1e9;

std::int64_t nanoseconds(double seconds) {
  constexpr double kMost = 9e18;
  const double count = std::floor(seconds * kNanoseconds);
  return count > 0 && count < kMost ? static_cast<std::int64_t>(count) : 0;
}

bool is_member(const KnownGroup& group, Rank rank) {
  return std::binary_search(group.members.begin(), group.members.end(), rank);
}

class DumpWriter {
 public:
  explicit DumpWriter(const KnownGroups& groups) : groups_(groups) {}

  std::string dump(Rank rank, const ToldCalls& calls) {
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
    for (const ToldCall& call : calls) {
      write_entry(call, index++);
    }
    out_.close_list();
    out_.close_dict();
    return out_.finish();
  }

 private:
  static bool called_in(string_view group, const ToldCalls& calls) {
    return std::any_of(calls.begin(), calls.end(),
                       [group](const ToldCall& call) { return call.group == group; });
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
    if (!group.pair_of.empty()) {
      say(kPairOf, group.pair_of);
    }
    out_.close_dict();
  }

  void write_status(const ToldCalls& calls) {
    struct Newest {
      std::int64_t enqueued = -1;
      std::int64_t started = -1;
      std::int64_t completed = -1;
    };
    std::map<string_view, Newest> status;
    for (const ToldCall& told : calls) {
      if (told.call->point_to_point) {
        continue;
      }
      const CallState state = told.call->state;
      Newest& newest = status[told.group];
      newest.enqueued = std::max(newest.enqueued, told.sequence);
      if (state == CallState::kStarted || model::is_over(state)) {
        newest.started = std::max(newest.started, told.sequence);
      }
      if (state == CallState::kCompleted) {
        newest.completed = std::max(newest.completed, told.sequence);
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

  void write_entry(const ToldCall& told, std::int64_t index) {
    const CollectiveCall& call = *told.call;
    const KnownGroup& group = groups_.at(told.group);
    const bool completed = call.state == CallState::kCompleted;
    out_.open_dict();
    write_frames(call);
    say("record_id", index);
    say("pg_id", static_cast<std::int64_t>(group.index));
    out_.text("process_group");
    out_.text(told.group);
    out_.text(group.description);
    out_.pair();
    say("collective_seq_id", told.sequence);  // also for messages: torchfrtrace matches them by it
    say("p2p_seq_id", call.point_to_point ? told.sequence : 0);
    say("op_id", told.sequence);
    say("profiling_name", fmt::format("{}:{}", group.backend, told.name));
    say("time_created_ns", nanoseconds(call.time.value_or(0)));
    const SizesOfCall sizes = sizes_of(call, group.ranks.size());
    const std::string dtype = recorded_dtype(call.dtype);
    write_sizes("input_sizes", "input_dtypes", sizes.input, dtype);
    write_sizes("output_sizes", "output_dtypes", sizes.output, dtype);
    const bool started = call.state == CallState::kStarted ||
                         call.state == CallState::kFailed;  // the format has no other word for it
    say("state", completed ? "completed" : started ? "started" : "scheduled");
    out_.text("time_discovered_started_ns");
    out_.none();
    write_time("time_discovered_completed_ns", completed ? call.end_time : std::nullopt);
    out_.text("retired");
    out_.flag(model::is_over(call.state));
    out_.text("is_p2p");
    out_.flag(call.point_to_point);
    out_.close_dict();
  }

  const KnownGroups& groups_;
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
  // A rank without records really made no call.
  if (job.history_complete && !job.observations.empty()) {
    for (const model::Process& process : job.observations.back().processes) {
      if (process.rank && process.role == model::Role::kRank &&
          !job.coverage.unobserved_ranks.contains(*process.rank)) {
        ranks.insert(*process.rank);
      }
    }
  }
  const auto groups = groups_of(job, told);
  const ToldCalls none;
  for (const Rank rank : ranks) {
    const auto calls = told.calls().find(rank);
    out.files.push_back({.name = fmt::format("rank_{}", rank),
                         .bytes = DumpWriter(groups).dump(
                             rank, calls == told.calls().end() ? none : calls->second)});
  }
  return out;
}

}  // namespace ddpdoctor::imports
