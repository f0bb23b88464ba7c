// SPDX-License-Identifier: Apache-2.0
// JobModel → ddpdoctor.capture/1. The same model gives the same bytes; unknown values and secrets
// are omitted.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "collector/imports/capture/capture.h"
#include "collector/imports/capture/parts.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::imports {
namespace {

using nlohmann::ordered_json;

template <typename T>
void put(ordered_json& out, const char* key, const std::optional<T>& value) {
  if (value) {
    out[key] = *value;
  }
}

/// Writes texts and lists that are not empty.
template <typename T>
void put_some(ordered_json& out, const char* key, const T& value) {
  if (!value.empty()) {
    out[key] = value;
  }
}

std::string_view progress_name(model::Progress progress) {
  switch (progress) {
    case model::Progress::kMoving:
      return "moving";
    case model::Progress::kStill:
      return "still";
    case model::Progress::kUnknown:
      break;
  }
  return "unknown";
}

ordered_json write_job(const model::JobModel& job) {
  ordered_json out = ordered_json::object();
  put(out, "world_size", job.world_size);
  put_some(out, "command", model::public_command(job.command));
  put_some(out, "hosts", job.hosts);
  put(out, "launcher_pid", job.launcher_pid);
  // Also if unknown, so that a reader does not derive it.
  out["progress"] = progress_name(job.progress);
  put(out, "seconds_without_progress", job.seconds_without_progress);
  if (job.ended) {
    out["ended"] = true;
  }
  if (job.history_complete) {
    out["history_complete"] = true;
  }
  return out;
}

ordered_json write_groups(const model::JobModel& job) {
  ordered_json out = ordered_json::array();
  for (const model::ProcessGroup& group : job.groups) {
    ordered_json entry = {{"id", group.id}};
    put_some(entry, "name", group.name);
    put_some(entry, "backend", group.backend);
    put_some(entry, "ranks", group.ranks);
    out.push_back(std::move(entry));
  }
  return out;
}

ordered_json write_observations(const model::JobModel& job) {
  ordered_json out = ordered_json::array();
  for (const model::Observation& observation : job.observations) {
    ordered_json processes = ordered_json::array();
    for (const model::Process& process : observation.processes) {
      processes.push_back(write_process(process));
    }
    out.push_back({{"time", observation.time}, {"processes", std::move(processes)}});
  }
  return out;
}

ordered_json write_site(const model::CallSite& site) {
  ordered_json out = {{"file", site.file}};
  if (site.line > 0 && site.line <= kMaxLine) {
    out["line"] = site.line;
  }
  put_some(out, "function", site.function);
  return out;
}

ordered_json write_call(const model::CollectiveCall& call) {
  ordered_json out = {{"rank", call.rank}, {"group", call.group}, {"sequence", call.sequence}};
  put_some(out, "operation", call.operation);
  if (call.point_to_point) {
    out["point_to_point"] = true;
  }
  put(out, "count", call.count);
  put(out, "shape", call.shape);
  put_some(out, "dtype", call.dtype);
  put_some(out, "reduce_op", call.reduce_op);
  put(out, "root", call.root);
  put(out, "peer", call.peer);
  put(out, "tag", call.tag);
  put(out, "splits", call.splits);
  put(out, "output_splits", call.output_splits);
  put(out, "sent_elements", call.sent_elements);
  put(out, "expected_elements", call.expected_elements);
  const auto state = std::find_if(kCallStates.begin(), kCallStates.end(),
                                  [&call](const auto& entry) { return entry.first == call.state; });
  if (state != kCallStates.end()) {
    out["state"] = state->second;
  }
  put(out, "begun", call.begun);
  put(out, "time", call.time);
  put(out, "end_time", call.end_time);
  if (call.call_site.known()) {
    out["call_site"] = write_site(call.call_site);
  }
  if (call.callers.size() > 1) {  // the first one is the call site
    ordered_json callers = ordered_json::array();
    for (const model::CallSite& caller : call.callers) {
      callers.push_back(write_site(caller));
    }
    out["callers"] = std::move(callers);
  }
  return out;
}

ordered_json write_fact(const model::Fact& fact) {
  ordered_json out = ordered_json::object();
  put(out, "rank", fact.rank);
  put(out, "pid", fact.pid);
  out["kind"] = fact.kind;
  if (fact.told) {
    out["told"] = true;
  }
  for (const auto& [name, value] : fact.fields) {
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr) {
      out[name] = model::without_secrets(*text);
    } else {
      std::visit([&out, &key = name](const auto& known) { out[key] = known; }, value);
    }
  }
  return out;
}

ordered_json write_sources(const std::map<std::string, program::SourceText>& sources) {
  ordered_json out = ordered_json::object();
  for (const auto& [file, lines] : sources) {
    ordered_json entry = ordered_json::object();
    auto& fields = entry.get_ref<ordered_json::object_t&>();
    // Avoids the object's own insert, which searches for the key first.
    for (const auto& [number, line] : lines) {
      fields.Container::emplace_back(std::to_string(number), line);
    }
    out[file] = std::move(entry);
  }
  return out;
}

ordered_json write_logs(const model::JobModel& job) {
  ordered_json out = ordered_json::array();
  for (const model::Log& log : job.logs) {
    ordered_json entry = ordered_json::object();
    put(entry, "rank", log.rank);
    entry["text"] = model::without_secrets(log.text);
    out.push_back(std::move(entry));
  }
  return out;
}

ordered_json write_coverage(const model::Coverage& coverage) {
  ordered_json out = ordered_json::object();
  put_some(out, "observed", coverage.observed);
  put_some(out, "unobserved", coverage.unobserved);
  put_some(out, "unobserved_ranks", coverage.unobserved_ranks.values());
  if (coverage.events_lost > 0) {
    out["events_lost"] = coverage.events_lost;
  }
  put_some(out, "warnings", coverage.warnings);
  return out;
}

}  // namespace

std::string write_capture(const model::JobModel& job) {
  ordered_json out = {{"schema", kCaptureSchema}};
  out["job"] = write_job(job);
  // Early in the document, because a recording may be cut.
  out["coverage"] = write_coverage(job.coverage);
  out["groups"] = write_groups(job);
  out["observations"] = write_observations(job);
  out["collectives"] = ordered_json::array();
  for (const model::CollectiveCall& call : job.collectives) {
    out["collectives"].push_back(write_call(call));
  }
  out["facts"] = ordered_json::array();
  for (const model::Fact& fact : job.facts) {
    out["facts"].push_back(write_fact(fact));
  }
  if (!job.framework_sources.empty()) {
    out["framework_sources"] = write_sources(job.framework_sources);
  }
  out["sources"] = write_sources(job.sources);
  out["logs"] = write_logs(job);
  // Names of files and functions may contain any bytes: invalid UTF-8 is replaced.
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddpdoctor::imports
