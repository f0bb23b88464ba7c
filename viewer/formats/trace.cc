// SPDX-License-Identifier: Apache-2.0
// The trace event format that Perfetto and chrome://tracing open: a process for each rank, a track
// for each group, an arrow between the calls of one collective.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/model/job_model.h"
#include "viewer/clock.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

using Json = nlohmann::ordered_json;
using model::CollectiveCall;

constexpr std::size_t kMostCalls = 400'000;  // about 100 MB; the newest are kept
constexpr double kMicrosecond = 1e-6;
constexpr int kLanesPerGroup = 1000;

/// A call with its place in the trace; times in seconds.
struct Slice {
  const CollectiveCall* call = nullptr;
  double begin = 0;
  double end = 0;
  int track = 0;
};

/// Calls whose time is known, in order; one that did not end lasts until the newest moment.
std::vector<Slice> slices_of(const model::JobModel& job) {
  const double newest = newest_moment(job);
  std::vector<Slice> out;
  for (const CollectiveCall& call : job.collectives) {
    if (call.time) {
      const double end = call.end_time.value_or(model::is_over(call.state) ? *call.time : newest);
      out.push_back({.call = &call, .begin = *call.time, .end = std::max(end, *call.time)});
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  if (out.size() > kMostCalls) {
    out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(kMostCalls));
  }
  return out;
}

/// Gives each slice a track of its rank and group on which nothing overlaps it; returns the tracks'
/// names.
std::map<std::pair<model::Rank, int>, std::string> lay_out(const model::JobModel& job,
                                                           std::vector<Slice>& slices) {
  std::map<std::string, int> numbers;
  std::map<std::pair<model::Rank, std::string>, std::vector<double>> busy_until;
  std::map<std::pair<model::Rank, int>, std::string> names;
  for (Slice& slice : slices) {
    const std::string& group = slice.call->group;
    const int number = numbers.try_emplace(group, static_cast<int>(numbers.size())).first->second;
    std::vector<double>& lanes = busy_until[{slice.call->rank, group}];
    auto lane = std::find_if(lanes.begin(), lanes.end(),
                             [&slice](double until) { return until <= slice.begin; });
    if (lane == lanes.end() && lanes.size() < kLanesPerGroup) {
      lane = lanes.insert(lanes.end(), 0);
    } else if (lane == lanes.end()) {
      lane = std::prev(lanes.end());
    }
    *lane = slice.end;
    const auto index = static_cast<int>(lane - lanes.begin());
    slice.track = number * kLanesPerGroup + index + 1;
    const auto known = std::find_if(job.groups.begin(), job.groups.end(),
                                    [&group](const auto& each) { return each.id == group; });
    std::string name = known == job.groups.end() || known->name.empty() ? group : known->name;
    name += index > 0 ? fmt::format(" ({})", index + 1) : "";
    names.try_emplace({slice.call->rank, slice.track}, base::printable(name));
  }
  return names;
}

/// Writes the events one by one: a whole document would be held in memory twice.
class Writer {
 public:
  explicit Writer(double origin) : origin_(origin) {}

  void add(const Json& event) {
    out_ += out_.empty() ? "\n" : ",\n";
    out_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  /// Microseconds since the first call.
  [[nodiscard]] double at(double seconds) const {
    return (seconds - origin_) / kMicrosecond;
  }
  [[nodiscard]] const std::string& events() const {
    return out_;
  }

 private:
  double origin_;
  std::string out_;
};

Json arguments(const CollectiveCall& call) {
  Json out = {{"group", base::printable(call.group)}, {"sequence", call.sequence}};
  if (call.shape) {
    out["shape"] = *call.shape;
  } else if (call.count) {
    out["count"] = *call.count;
  }
  if (!call.dtype.empty()) {
    out["dtype"] = base::printable(call.dtype);
  }
  if (!call.reduce_op.empty()) {
    out["reduce_op"] = base::printable(call.reduce_op);
  }
  if (call.root) {
    out["root"] = *call.root;
  }
  if (call.peer) {
    out["peer"] = *call.peer;
  }
  if (call.call_site.known()) {
    out["call_site"] = base::printable(fmt::format("{}:{} in {}", call.call_site.file,
                                                   call.call_site.line, call.call_site.function));
  }
  if (!model::is_over(call.state)) {
    out["state"] = "waiting";
  }
  return out;
}

void add_slice(Writer& writer, const Slice& slice) {
  const CollectiveCall& call = *slice.call;
  writer.add({{"ph", "X"},
              {"name", base::printable(fmt::format("{} #{}", call.operation, call.sequence))},
              {"cat", call.point_to_point ? "p2p" : "collective"},
              {"pid", call.rank},
              {"tid", slice.track},
              {"ts", writer.at(slice.begin)},
              {"dur", (slice.end - slice.begin) / kMicrosecond},
              {"args", arguments(call)}});
}

/// One arrow through all ranks' calls of one collective, in the order of their arrival.
void add_flows(Writer& writer, const std::vector<Slice>& slices) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<const Slice*>> collectives;
  for (const Slice& slice : slices) {
    if (!slice.call->point_to_point) {
      collectives[{slice.call->group, slice.call->sequence}].push_back(&slice);
    }
  }
  std::size_t id = 0;
  for (const auto& [key, calls] : collectives) {
    ++id;
    for (std::size_t i = 0; calls.size() > 1 && i < calls.size(); ++i) {
      Json event = {{"ph", i == 0                 ? "s"
                           : i + 1 < calls.size() ? "t"
                                                  : "f"},
                    {"name", "collective"},
                    {"cat", "collective"},
                    {"id", id},
                    {"pid", calls[i]->call->rank},
                    {"tid", calls[i]->track},
                    {"ts", writer.at(calls[i]->begin)}};
      if (i > 0) {
        event["bp"] = "e";
      }
      writer.add(event);
    }
  }
}

void add_findings(Writer& writer, const diagnosis::Diagnosis& diagnosis, double when) {
  for (const detectors::Finding& finding : diagnosis.findings) {
    for (const model::Rank rank : finding.culprits.values()) {
      writer.add({{"ph", "i"},
                  {"s", "p"},
                  {"name", finding.kind},
                  {"pid", rank},
                  {"tid", 1},
                  {"ts", writer.at(when)},
                  {"args", {{"summary", base::printable(finding.summary)}}}});
    }
  }
}

}  // namespace

std::string trace(const diagnosis::Diagnosis& diagnosis) {
  const model::JobModel& job = diagnosis.job;
  std::vector<Slice> slices = slices_of(job);
  const auto names = lay_out(job, slices);
  Writer writer(slices.empty() ? 0 : slices.front().begin);
  std::optional<model::Rank> previous;
  for (const auto& [key, name] : names) {
    const auto& [rank, track] = key;
    if (previous != rank) {
      writer.add({{"ph", "M"},
                  {"name", "process_name"},
                  {"pid", rank},
                  {"args", {{"name", fmt::format("rank {}", rank)}}}});
      previous = rank;
    }
    writer.add({{"ph", "M"},
                {"name", "thread_name"},
                {"pid", rank},
                {"tid", track},
                {"args", {{"name", name}}}});
  }
  for (const Slice& slice : slices) {
    add_slice(writer, slice);
  }
  add_flows(writer, slices);
  add_findings(writer, diagnosis, newest_moment(job));
  const Json about = {{"tool", fmt::format("ddpdoctor {}", tool_version())},
                      {"verdict", diagnosis::verdict_name(diagnosis.verdict)},
                      {"calls_left_out", job.collectives.size() - slices.size()}};
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[{}\n]}}\n",
                     about.dump(-1, ' ', false, Json::error_handler_t::replace), writer.events());
}

}  // namespace ddpdoctor::viewer
