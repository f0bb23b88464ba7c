// SPDX-License-Identifier: Apache-2.0
// One signature covers all equal calls; their order shows which one started or ended. Calls that a
// CUDA graph repeats are not listed individually and are omitted.
#include "collector/imports/clog.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/operations.h"

namespace ddpdoctor::imports {
namespace {

using model::CallState;
using model::CollectiveCall;

constexpr std::size_t kMostCalls = 200'000;  // of one rank
constexpr std::size_t kMostNames = 100'000;  // signatures, communicators
constexpr std::size_t kLongestComm = 128;
constexpr std::size_t kMostMembers = 1 << 17;

using Pairs = std::array<std::pair<std::string_view, std::string_view>, 13>;

constexpr Pairs kDtypes = {{{"f32", "float32"},
                            {"f64", "float64"},
                            {"f16", "float16"},
                            {"bf16", "bfloat16"},
                            {"i64", "int64"},
                            {"i32", "int32"},
                            {"i16", "int16"},
                            {"i8", "int8"},
                            {"u8", "uint8"},
                            {"bool", "bool"},
                            {"fp8e4m3", "float8_e4m3fn"},
                            {"fp8e5m2", "float8_e5m2"},
                            {"other", ""}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOperations = {
    {{"all_gather_single", "all_gather_into_tensor"},
     {"reduce_scatter_single", "reduce_scatter_tensor"},
     {"all_to_all_v_single", "all_to_all_single"}}};

template <typename Table>
std::string translated(const Table& table, std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [word](const auto& row) { return row.first == word; });
  return std::string(found == table.end() ? word : found->second);
}

/// The value of "name=" among the fields.
std::string_view value_of(const std::vector<std::string_view>& fields, std::string_view name) {
  for (std::string_view field : fields) {
    if (take_prefix(field, name) && take_prefix(field, "=")) {
      return field;
    }
  }
  return {};
}

std::optional<std::vector<std::int64_t>> numbers_of(std::string_view text, std::size_t most) {
  std::vector<std::int64_t> out;
  for (const std::string_view part : base::split(text, ',')) {
    const auto number = number_of(part, kMaxNumber);
    if (!number || out.size() >= most) {
      return std::nullopt;
    }
    out.push_back(*number);
  }
  return out;
}

struct Reading {
  std::map<std::string, CollectiveCall, std::less<>> signatures;  // by "C7"
  std::map<std::string, std::deque<std::size_t>, std::less<>> open;
  std::map<std::string, std::int64_t> counted;  // calls, by communicator
  std::vector<CollectiveCall> calls;
  std::map<std::string, std::vector<model::Rank>> members;
  std::string world;
  std::int64_t size = 0;
  std::optional<model::Rank> rank;
  double base = 0;
};

void read_communicator(const std::vector<std::string_view>& fields, Reading& reading) {
  const auto rank = number_of(value_of(fields, "rank"), kMaxRank);
  const auto size = number_of(value_of(fields, "world_size"), kMaxRank);
  if (rank && size && *size > reading.size) {
    reading.size = *size;
    reading.rank = static_cast<model::Rank>(*rank);
    reading.world = base::elide(value_of(fields, "comm"), kLongestComm);
  }
}

void read_split(const std::vector<std::string_view>& fields, Reading& reading) {
  const auto ranks = numbers_of(value_of(fields, "ranks"), kMostMembers);
  if (ranks && reading.members.size() < kMostNames) {
    auto& members = reading.members[base::elide(value_of(fields, "child"), kLongestComm)];
    for (const std::int64_t rank : *ranks) {
      if (rank <= kMaxRank) {
        members.push_back(static_cast<model::Rank>(rank));
      }
    }
  }
}

void read_signature(const std::vector<std::string_view>& fields, Reading& reading) {
  if (fields.size() < 3 || reading.signatures.size() >= kMostNames) {
    return;
  }
  CollectiveCall call;
  call.operation = translated(kOperations, fields[2].substr(0, kLongestComm));
  call.point_to_point = call.operation == "send" || call.operation == "recv";
  call.group = base::elide(value_of(fields, "comm"), kLongestComm);
  call.count =
      number_of(value_of(fields, call.operation == "recv" ? "out_count" : "in_count"), kMaxNumber);
  call.dtype = translated(kDtypes, value_of(fields, "dtype").substr(0, kLongestComm));
  call.reduce_op = base::elide(value_of(fields, "red_op"), kLongestComm);
  if (const auto root = number_of(value_of(fields, "root"), kMaxRank)) {
    call.root = static_cast<model::Rank>(*root);
  }
  if (const auto peer = number_of(value_of(fields, "peer"), kMaxRank)) {
    call.peer = static_cast<model::Rank>(*peer);
  }
  call.splits = numbers_of(value_of(fields, "in_splits"), kMostMembers);
  call.output_splits = numbers_of(value_of(fields, "out_splits"), kMostMembers);
  reading.signatures.emplace(fields[0], std::move(call));
}

std::optional<double> moment(std::string_view field, double base) {
  if (!take_prefix(field, "+")) {
    return std::nullopt;
  }
  const auto whole = take_number(field, 4'000'000'000);
  const auto millis = take_prefix(field, ".") ? take_number(field, 999) : std::nullopt;
  return whole ? std::optional(base + static_cast<double>(*whole) +
                               static_cast<double>(millis.value_or(0)) / 1000)
               : std::nullopt;
}

/// "C1|Q|work_id=1|+0.001", "C1|S|+0.002", "C1|E|+0.005".
void read_event(const std::vector<std::string_view>& fields, Reading& reading) {
  const auto signature = reading.signatures.find(fields[0]);
  if (fields.size() < 3 || signature == reading.signatures.end()) {
    return;
  }
  auto& open = reading.open[std::string(fields[0])];
  if (fields[1] == "Q" && reading.calls.size() < kMostCalls) {
    CollectiveCall call = signature->second;
    call.sequence = ++reading.counted[call.group];
    call.state = CallState::kEnqueued;
    call.time = moment(fields.back(), reading.base);
    open.push_back(reading.calls.size());
    reading.calls.push_back(std::move(call));
  } else if (fields[1] == "S") {
    const auto next = std::find_if(open.begin(), open.end(), [&reading](std::size_t at) {
      return reading.calls[at].state == CallState::kEnqueued;
    });
    if (next != open.end()) {
      reading.calls[*next].state = CallState::kStarted;
    }
  } else if (fields[1] == "E" && !open.empty()) {
    reading.calls[open.front()].state = CallState::kCompleted;
    reading.calls[open.front()].end_time = moment(fields.back(), reading.base);
    open.pop_front();
  }
}

void read_line(std::string_view line, Reading& reading) {
  const auto fields = base::split(line, '|');
  const std::string_view first = fields.front();
  if (first == "V") {
    std::string_view base = value_of(fields, "base_timestamp");
    reading.base = static_cast<double>(take_number(base, 4'000'000'000).value_or(0));
  } else if (first == "new_comm") {
    read_communicator(fields, reading);
  } else if (first == "split") {
    read_split(fields, reading);
  } else if (first.starts_with('C') && fields.size() > 1) {
    fields[1] == "sig" ? read_signature(fields, reading) : read_event(fields, reading);
  }
}

}  // namespace

bool is_clog(std::string_view head, std::string_view) {
  return head.starts_with("V|") &&
         head.substr(0, head.find('\n')).find("|base_timestamp=") != head.npos;
}

base::Result<model::JobModel> read_clog(std::string_view bytes, const std::string& path) {
  Reading reading;
  for (const std::string_view line : base::split(bytes, '\n')) {
    read_line(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line, reading);
  }
  if (!reading.rank) {
    return base::failure(fmt::format("{} names no communicator, so its rank is unknown", path));
  }
  model::JobModel job;
  job.world_size = static_cast<int>(reading.size);
  std::vector<model::Rank> all;
  for (model::Rank rank = 0; rank < job.world_size; ++rank) {
    all.push_back(rank);
  }
  job.groups.push_back(
      {.id = reading.world, .name = "default_pg", .backend = "nccl", .ranks = std::move(all)});
  for (auto& [name, ranks] : reading.members) {
    job.groups.push_back({.id = name, .name = name, .backend = "nccl", .ranks = std::move(ranks)});
  }
  for (CollectiveCall& call : reading.calls) {
    call.rank = *reading.rank;
    job.collectives.push_back(std::move(call));
  }
  job.coverage.observed.push_back(fmt::format("calls of rank {} in {}", *reading.rank, path));
  return job;
}

}  // namespace ddpdoctor::imports
