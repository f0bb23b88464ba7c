// SPDX-License-Identifier: Apache-2.0
// Reads the "collectives" of a capture.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collector/imports/capture/parts.h"
#include "collector/imports/documents/json_cursor.h"
#include "collector/model/operations.h"
#include "collector/model/questions.h"
#include "collector/model/torch_evidence.h"

namespace ddpdoctor::imports {
namespace {

using model::JobModel;

model::CallState read_state(const Cursor& in) {
  const auto name = in.text();
  if (!name) {
    return model::CallState::kUnknown;
  }
  if (*name == "scheduled") {  // torch's word
    return model::CallState::kEnqueued;
  }
  const auto found = std::find_if(kCallStates.begin(), kCallStates.end(),
                                  [&name](const auto& entry) { return entry.second == *name; });
  if (found == kCallStates.end()) {
    in.refuse("\"enqueued\", \"started\", \"completed\" or \"failed\"");
    return model::CallState::kUnknown;
  }
  return found->first;
}

/// The group of a call that does not name one: the only group, else the world; nothing if there are
/// several candidates.
std::optional<std::string> group_of(const Cursor& call, const JobModel& job) {
  const Cursor group = call["group"];
  if (auto name = group.name()) {
    return name;
  }
  if (job.groups.size() > 1) {
    return std::nullopt;
  }
  return job.groups.empty() ? "0" : job.groups.front().id;
}

void read_sizes(const Cursor& in, model::CollectiveCall& out) {
  const Cursor count = in["count"];
  out.count = count.whole(0, kMaxNumber);
  const Cursor shape = in["shape"];
  out.shape = shape.wholes(0, kMaxNumber);
  const Cursor splits = in["splits"];
  out.splits = splits.wholes(0, kMaxNumber);
  const Cursor expected = in["output_splits"];
  out.output_splits = expected.wholes(0, kMaxNumber);
  const Cursor sent = in["sent_elements"];
  out.sent_elements = sent.whole(0, kMaxNumber);
  const Cursor wanted = in["expected_elements"];
  out.expected_elements = wanted.whole(0, kMaxNumber);
  if (const std::string dtype = text(in, "dtype"); !dtype.empty()) {
    out.dtype = model::dtype_of(dtype);
  }
  out.reduce_op = text(in, "reduce_op");
}

void read_sites(const Cursor& in, model::CollectiveCall& out) {
  const Cursor site = in["call_site"];
  out.call_site = read_call_site(site);
  const Cursor callers = in["callers"];
  callers.each([&out](const Cursor& caller) { out.callers.push_back(read_call_site(caller)); });
  if (out.callers.empty() && out.call_site.known()) {
    out.callers.push_back(out.call_site);
  } else if (!out.callers.empty() && !out.call_site.known()) {
    out.call_site = out.callers.front();
  }
}

/// Nothing for a call without a rank or number: it cannot be compared with any other.
constexpr std::int64_t kLargestTag = 0x7FFFFFFF;

std::optional<model::CollectiveCall> read_call(const Cursor& in, const JobModel& job) {
  const Cursor rank = in["rank"];
  const Cursor sequence = in["sequence"];
  const Cursor operation = in["operation"];
  const Cursor peer = in["peer"];
  const Cursor root = in["root"];
  const Cursor tag = in["tag"];
  const Cursor state = in["state"];
  const Cursor begun = in["begun"];
  const Cursor time = in["time"];
  const Cursor end_time = in["end_time"];
  const Cursor direct = in["point_to_point"];
  const auto whose = read_rank(rank);
  const auto number = sequence.whole(0, kMaxNumber);
  const model::Operation named = model::operation_of(operation.text().value_or(""));
  model::CollectiveCall out;
  out.rank = whose.value_or(0);
  const auto group = group_of(in, job);
  out.group = group.value_or("");
  out.sequence = number.value_or(0);
  out.operation = named.name;
  out.peer = read_rank(peer);
  out.root = read_rank(root);
  if (const auto value = tag.whole(0, kLargestTag)) {
    out.tag = static_cast<int>(*value);
  }
  out.point_to_point = direct.flag().value_or(named.point_to_point || out.peer.has_value());
  read_sizes(in, out);
  out.state = read_state(state);
  out.begun = begun.flag();
  out.time = time.number();
  out.end_time = end_time.number();
  read_sites(in, out);
  return whose && number && group ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

void read_collectives(const Cursor& in, JobModel& out) {
  std::size_t skipped = 0;
  in.each([&](const Cursor& call) {
    if (auto read = read_call(call, out)) {
      out.collectives.push_back(std::move(*read));
    } else {
      ++skipped;
    }
  });
  if (skipped > 0) {
    out.coverage.warnings.push_back(
        fmt::format("{} collectives without rank, group or sequence were left out", skipped));
    out.coverage.events_lost += skipped;
  }
}

}  // namespace ddpdoctor::imports
