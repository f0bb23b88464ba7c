// SPDX-License-Identifier: Apache-2.0
// NCCL numbers the calls of each operation separately. The number of a call among all calls of its
// communicator is the sum of the newest numbers of all operations, as for RAS. The files do not
// contain calls that have not completed.
#include "collector/imports/inspector.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/documents/json_cursor.h"
#include "collector/imports/documents/json_text.h"
#include "collector/model/operations.h"

namespace ddpdoctor::imports {
namespace {

using model::CollectiveCall;

constexpr std::size_t kMostInspectorCalls = 4096;  // of a communicator; the newest are kept
constexpr std::size_t kMostCommunicators = 10'000;
constexpr std::size_t kMostOperations = 64;
constexpr std::size_t kLongestInspected = 128;
constexpr std::int64_t kLargest = std::int64_t{1} << 53;  // exact in a JSON number

/// A call, kept in file order; numbered() numbers it when all operations are known.
struct Completed {
  CollectiveCall call;
  std::string operation;  // as NCCL names it
  std::int64_t number = 0;
};

struct Communicator {
  std::optional<model::Rank> rank;
  std::int64_t size = 0;
  std::map<std::string, std::int64_t> first;  // number of the first call read, by operation
  std::deque<Completed> calls;
  std::map<std::string, std::int64_t> dropped;  // newest number of the calls not kept

  void add(Completed one) {
    if (first.size() >= kMostOperations && !first.contains(one.operation)) {
      return;
    }
    first.emplace(one.operation, one.number);
    calls.push_back(std::move(one));
    if (calls.size() > kMostInspectorCalls) {
      dropped[calls.front().operation] = calls.front().number;
      calls.pop_front();
    }
  }
};

struct InspectorReading {
  std::map<std::string, Communicator> all;  // by NCCL's hash
  std::string host;
  pid_t pid = 0;
  std::size_t damaged = 0;  // unreadable lines; a killed process may leave one at the end
};

std::optional<double> seconds(const Cursor& micros) {
  const auto told = micros.whole(1, kLargest);
  return told ? std::optional(static_cast<double>(*told) / 1e6) : std::nullopt;
}

void read_record(const Cursor& record, InspectorReading& reading) {
  const Cursor header = record["header"];
  const Cursor metadata = record["metadata"];
  const Cursor call = record["coll_perf"];
  const Cursor id = header["id"];
  const Cursor rank = header["rank"];
  const Cursor size = header["n_ranks"];
  const Cursor host = metadata["hostname"];
  const Cursor pid = metadata["pid"];
  reading.host = base::elide(host.text().value_or(""), kLongestInspected);
  reading.pid = static_cast<pid_t>(pid.whole(1, kMaxPid).value_or(0));
  const auto whose = rank.whole(0, kMaxRank);
  const std::string name = base::elide(id.text().value_or(""), kLongestInspected);
  const bool fits = reading.all.size() < kMostCommunicators || reading.all.contains(name);
  if (!whose || name.empty() || !fits) {
    return;
  }
  Communicator& communicator = reading.all[name];
  communicator.rank = static_cast<model::Rank>(*whose);
  communicator.size = size.whole(1, model::kMaxWorldSize).value_or(0);
  if (!call.present()) {
    return;  // point-to-point messages: each rank numbers its own, so they cannot be compared
  }
  const Cursor operation = call["coll"];
  const Cursor number = call["coll_sn"];
  const Cursor trace = call["event_trace_ts"];  // only with NCCL_INSPECTOR_DUMP_VERBOSE=1
  Completed done;
  done.operation = base::elide(operation.text().value_or(""), kLongestInspected);
  done.number = number.whole(0, kLargest).value_or(0);
  done.call.rank = *communicator.rank;
  done.call.group = name;
  done.call.operation = model::operation_of(done.operation).name;
  done.call.state = model::CallState::kCompleted;
  if (trace.present()) {
    const Cursor begun = trace["coll_start_ts"];
    done.call.time = seconds(begun);
  }
  communicator.add(std::move(done));
}

/// The calls with their numbers among all calls of the communicator, which start at 1.
std::vector<CollectiveCall> numbered(Communicator communicator) {
  std::map<std::string, std::int64_t> newest;
  std::int64_t sum = 0;
  for (const auto& [operation, number] : communicator.first) {
    newest[operation] = number;  // earlier calls are not in the file; numbers start at 0
    sum += number;
  }
  for (const auto& [operation, number] : communicator.dropped) {
    sum += number + 1 - newest[operation];
    newest[operation] = number + 1;
  }
  std::vector<CollectiveCall> out;
  for (Completed& one : communicator.calls) {
    sum += one.number + 1 - newest[one.operation];
    newest[one.operation] = one.number + 1;
    one.call.sequence = sum;
    out.push_back(std::move(one.call));
  }
  return out;
}

}  // namespace

bool is_inspector(std::string_view head, std::string_view) {
  return base::trim(head).starts_with('{') &&
         head.find("\"inspector_output_format_version\"") != std::string_view::npos;
}

base::Result<model::JobModel> read_inspector(std::string_view bytes, const std::string& path) {
  InspectorReading reading;
  Complaint complaint{.file = path, .first = {}};
  for (const std::string_view line : base::split(bytes, '\n')) {
    if (base::trim(line).empty()) {
      continue;
    }
    const auto document = read_json(line, path);
    if (!document) {
      ++reading.damaged;
      continue;
    }
    read_record(Cursor(*document, complaint), reading);
    if (complaint.first) {
      return tl::make_unexpected(*complaint.first);
    }
  }
  const auto world =
      std::max_element(reading.all.begin(), reading.all.end(),
                       [](const auto& a, const auto& b) { return a.second.size < b.second.size; });
  if (world == reading.all.end()) {
    return base::failure(fmt::format("{} names no communicator, so its rank is unknown", path));
  }
  model::JobModel job;
  job.world_size = static_cast<int>(world->second.size);
  model::ProcessGroup group{.id = world->first, .name = {}, .backend = "nccl", .ranks = {}};
  for (model::Rank rank = 0; rank < world->second.size; ++rank) {
    group.ranks.push_back(rank);
  }
  job.groups.push_back(std::move(group));
  const model::Rank rank = *world->second.rank;
  job.collectives = numbered(std::move(world->second));
  job.coverage.observed.push_back(
      fmt::format("completed calls of rank {} (pid {} on {}) in {}, by NCCL's Inspector", rank,
                  reading.pid, reading.host, path));
  if (reading.all.size() > 1) {
    job.coverage.warnings.push_back(fmt::format(
        "of {} communicators in {} only the largest is read: ranks of the others are not global",
        reading.all.size(), path));
  }
  if (reading.damaged > 1) {
    job.coverage.warnings.push_back(
        fmt::format("{} lines of {} could not be read", reading.damaged, path));
  }
  return job;
}

}  // namespace ddpdoctor::imports
