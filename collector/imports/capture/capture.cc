// SPDX-License-Identifier: Apache-2.0
// ddpdoctor.capture/1 → JobModel. Strict about types, tolerant of missing fields; ignores unknown
// fields.
#include "collector/imports/capture/capture.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/documents/json_cursor.h"
#include "collector/imports/documents/json_text.h"
#include "collector/model/building/kept_locks.h"
#include "collector/model/operations.h"
#include "collector/model/progress.h"
#include "collector/model/questions.h"
#include "collector/model/torch_evidence.h"

namespace ddpdoctor::imports {
namespace {

using model::JobModel;
using nlohmann::json;

std::vector<model::Rank> ranks(const Cursor& in) {
  std::vector<model::Rank> out;
  for (const std::int64_t rank : in.wholes(0, kMaxRank).value_or(std::vector<std::int64_t>())) {
    out.push_back(static_cast<model::Rank>(rank));
  }
  return out;
}

base::Result<void> check_schema(const PlainDocument& document, const std::string& name) {
  const auto hint = fmt::format("a capture says \"schema\": \"{}\"", kCaptureSchema);
  if (!document.root.is(PlainValue::Kind::kDict)) {
    return base::failure(fmt::format("{} is not a capture: the document must be an object", name),
                         hint);
  }
  const PlainValue* const schema = document.find(document.root, "schema");
  if (schema == nullptr || !schema->is(PlainValue::Kind::kText)) {
    return base::failure(fmt::format("{} is not a capture: it names no schema", name), hint);
  }
  const std::string written(schema->as_text());
  if (written != kCaptureSchema) {
    return base::failure(
        fmt::format("{} is written in the schema \"{}\", which this ddpdoctor does not read", name,
                    base::elide(base::printable(written), 60)),
        hint);
  }
  return {};
}

std::optional<model::Progress> read_progress(const Cursor& in) {
  const auto name = in.text();
  if (!name || *name == "unknown") {
    return name ? std::optional(model::Progress::kUnknown) : std::nullopt;
  }
  if (*name != "still" && *name != "moving") {
    in.refuse("\"still\", \"moving\" or \"unknown\"");
  }
  return *name == "still" ? model::Progress::kStill : model::Progress::kMoving;
}

/// Reads "job" and returns its progress, if it has one.
std::optional<model::Progress> read_job(const Cursor& in, JobModel& out) {
  const Cursor world_size = in["world_size"];
  if (const auto size = world_size.whole(0, model::kMaxWorldSize); size && *size > 0) {
    out.world_size = static_cast<int>(*size);
  }
  const Cursor command = in["command"];
  out.command = command.texts();
  const Cursor hosts = in["hosts"];
  out.hosts = hosts.texts();
  const Cursor launcher = in["launcher_pid"];
  if (const auto pid = launcher.whole(0, kMaxPid); pid && *pid > 0) {
    out.launcher_pid = static_cast<pid_t>(*pid);
  }
  const Cursor seconds = in["seconds_without_progress"];
  out.seconds_without_progress = seconds.number();
  const Cursor ended = in["ended"];
  out.ended = ended.flag().value_or(false);
  const Cursor complete = in["history_complete"];
  out.history_complete = complete.flag().value_or(false);
  const Cursor progress = in["progress"];
  return read_progress(progress);
}

void read_groups(const Cursor& in, JobModel& out) {
  in.each([&out](const Cursor& group) {
    const Cursor id = group["id"];
    const Cursor members = group["ranks"];
    out.groups.push_back({.id = id.name().value_or("0"),
                          .name = text(group, "name"),
                          .backend = text(group, "backend"),
                          .ranks = ranks(members)});
  });
}

/// A child of a rank with the same rank and no other role is its helper, not a second rank.
void tell_children_apart(model::Observation& observation) {
  std::map<std::pair<std::string, pid_t>, const model::Process*> ranks;
  for (const model::Process& process : observation.processes) {
    if (process.role == model::Role::kRank && process.rank && process.pid > 0) {
      ranks.emplace(std::pair(process.host, process.pid), &process);
    }
  }
  for (model::Process& process : observation.processes) {
    const auto parent = ranks.find(std::pair(process.host, process.ppid));
    if (process.role == model::Role::kRank && parent != ranks.end() && parent->second != &process &&
        parent->second->rank == process.rank && process.pid != process.ppid) {
      process.role = model::Role::kOther;
    }
  }
}

void read_observations(const Cursor& in, JobModel& out) {
  in.each([&out](const Cursor& entry) {
    model::Observation observation;
    const Cursor time = entry["time"];
    observation.time = time.number().value_or(0);
    const Cursor processes = entry["processes"];
    processes.each([&observation](const Cursor& process) {
      auto read = read_processes(process);
      std::move(read.begin(), read.end(), std::back_inserter(observation.processes));
    });
    tell_children_apart(observation);
    out.observations.push_back(std::move(observation));
  });
  std::stable_sort(out.observations.begin(), out.observations.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
}

model::FactValue fact_value(const json& value) {
  if (value.is_boolean()) {
    return value.get<bool>();
  }
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
    return value.get<double>();
  }
  if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  if (value.is_number()) {
    return value.get<double>();
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_array()) {
    std::vector<std::string> list;
    for (const json& element : value) {
      list.push_back(element.is_string() ? element.get<std::string>() : element.dump());
    }
    return list;
  }
  return value.dump();
}

void read_facts(const Cursor& in, JobModel& out) {
  in.each([&out](const Cursor& entry) {
    model::Fact fact;
    const Cursor rank = entry["rank"];
    fact.rank = read_rank(rank);
    const Cursor pid = entry["pid"];
    if (const auto number = pid.whole(0, kMaxPid)) {
      fact.pid = static_cast<pid_t>(*number);
    }
    fact.kind = text(entry, "kind");
    fact.told = entry["told"].flag().value_or(false);
    entry.each_field([&fact](const std::string& name, const Cursor& value) {
      if (name != "rank" && name != "pid" && name != "kind" && name != "told") {
        fact.fields[name] = fact_value(tree_of(value.document(), value.value()));
      }
    });
    if (!fact.kind.empty()) {
      out.facts.push_back(std::move(fact));
    }
  });
}

/// {"57": "text"}, or a whole file as one string.
void read_source(const Cursor& in, program::SourceText& lines) {
  if (in.is(PlainValue::Kind::kText)) {
    int number = 0;
    for (const std::string_view line : base::split(in.value().as_text(), '\n')) {
      lines[++number] = std::string(line);
    }
    return;
  }
  in.each_field([&lines](const std::string& key, const Cursor& line) {
    int number = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (error != std::errc() || end != key.data() + key.size() || number < 1 || number > kMaxLine) {
      line.refuse("named by its line number");
      return;
    }
    lines[number] = line.text().value_or("");
  });
}

void read_logs(const Cursor& in, JobModel& out) {
  in.each([&out](const Cursor& entry) {
    const Cursor rank = entry["rank"];
    out.logs.push_back({.rank = read_rank(rank), .text = text(entry, "text")});
  });
}

void read_coverage(const Cursor& in, JobModel& out) {
  const Cursor observed = in["observed"];
  out.coverage.observed = observed.texts();
  const Cursor unobserved = in["unobserved"];
  out.coverage.unobserved = unobserved.texts();
  const Cursor unobserved_ranks = in["unobserved_ranks"];
  out.coverage.unobserved_ranks = model::RankSet(ranks(unobserved_ranks));
  const Cursor lost = in["events_lost"];
  out.coverage.events_lost += static_cast<std::uint64_t>(lost.whole(0, kMaxNumber).value_or(0));
  const Cursor warnings = in["warnings"];
  for (std::string& warning : warnings.texts()) {
    out.coverage.warnings.push_back(std::move(warning));
  }
}

bool everybody_ended(const JobModel& job) {
  const model::Observation* now = model::latest(job);
  if (now == nullptr || model::ranks_seen(job).empty()) {
    return false;
  }
  return std::all_of(now->processes.begin(), now->processes.end(), [](const model::Process& p) {
    return p.role != model::Role::kRank || p.exit.has_value();
  });
}

/// Derives from the rest what the capture does not say.
void conclude(JobModel& job, std::optional<model::Progress> progress) {
  model::complete_groups(job);
  model::name_heirs_of_locks(job);
  if (job.hosts.empty()) {
    std::set<std::string> hosts;
    for (const model::Observation& observation : job.observations) {
      for (const model::Process& process : observation.processes) {
        if (!process.host.empty()) {
          hosts.insert(process.host);
        }
      }
    }
    job.hosts.assign(hosts.begin(), hosts.end());
  }
  job.ended = job.ended || everybody_ended(job);
  const model::Movement seen = model::movement(job);
  job.progress = progress.value_or(seen.progress);
  if (!job.seconds_without_progress && job.progress == model::Progress::kStill) {
    job.seconds_without_progress = seen.seconds_without_progress;
  }
}

}  // namespace

base::Result<JobModel> read_capture(std::string_view json_text, const std::string& name) {
  const PlainDocument document = TRY(read_json(json_text, name));
  if (auto schema = check_schema(document, name); !schema) {
    return tl::make_unexpected(schema.error());
  }
  Complaint complaint{.file = name, .first = {}};
  const Cursor root(document, complaint);
  JobModel job;
  const Cursor about = root["job"];
  const auto progress = read_job(about, job);
  const Cursor groups = root["groups"];
  read_groups(groups, job);
  const Cursor observations = root["observations"];
  read_observations(observations, job);
  const Cursor collectives = root["collectives"];
  read_collectives(collectives, job);
  const Cursor facts = root["facts"];
  read_facts(facts, job);
  const Cursor sources = root["sources"];
  sources.each_field([&job](const std::string& file, const Cursor& lines) {
    read_source(lines, job.sources[file]);
  });
  const Cursor of_frameworks = root["framework_sources"];
  of_frameworks.each_field([&job](const std::string& file, const Cursor& lines) {
    read_source(lines, job.framework_sources[file]);
  });
  const Cursor logs = root["logs"];
  read_logs(logs, job);
  const Cursor coverage = root["coverage"];
  read_coverage(coverage, job);
  if (complaint.first) {
    return tl::make_unexpected(*complaint.first);
  }
  conclude(job, progress);
  return job;
}

}  // namespace ddpdoctor::imports
