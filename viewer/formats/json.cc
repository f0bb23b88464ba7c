// SPDX-License-Identifier: Apache-2.0
// ddpdoctor.report/1 as docs/report.schema.json describes it. Unknown values are left out; keys
// keep one order, so that two reports can be compared with diff. Every string is printable UTF-8,
// whatever the job's processes contained.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/model/left_segments.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "viewer/clock.h"
#include "viewer/formats/report_tree.h"
#include "viewer/render.h"
#include "viewer/values.h"

namespace ddpdoctor::viewer {

namespace {

using Json = nlohmann::ordered_json;

// Deeper than any readable tree; a hostile capture must not exhaust our stack.
constexpr int kDeepestTree = 1000;

std::string clean(std::string_view text) {
  return base::printable(text);
}

Json strings(const std::vector<std::string>& texts) {
  Json out = Json::array();
  for (const std::string& text : texts) {
    out.push_back(clean(text));
  }
  return out;
}

void set_text(Json& object, const char* key, std::string_view text) {
  if (!text.empty()) {
    object[key] = clean(text);
  }
}

template <typename T>
void set(Json& object, const char* key, const std::optional<T>& value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value && std::isfinite(*value)) {
      object[key] = *value;
    }
  } else if (value) {
    object[key] = *value;
  }
}

Json place(std::string_view file, int line, std::string_view function) {
  Json out = Json::object();
  set_text(out, "file", file);
  if (line > 0) {
    out["line"] = line;
  }
  set_text(out, "function", function);
  return out;
}

Json value(const model::FactValue& fact) {
  return std::visit(
      [](const auto& held) -> Json {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          return clean(held);
        } else if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
          return strings(held);
        } else {
          return held;
        }
      },
      fact);
}

Json job(const model::JobModel& model) {
  Json out = Json::object();
  set(out, "world_size", model.world_size);
  out["command"] = strings(model.command);
  out["hosts"] = strings(model.hosts);
  set(out, "launcher_pid", model.launcher_pid);
  set(out, "seconds_without_progress", model.seconds_without_progress);
  set(out, "observed_at", observed_at(model));
  return out;
}

Json values(const std::vector<model::ValueGroup>& groups) {
  Json out = Json::array();
  for (const model::ValueGroup& group : groups) {
    Json one = {{"ranks", group.ranks.values()}, {"expression", clean(group.expression)}};
    set_text(one, "value", group.value);
    one["state"] = model::state_name(group.state);
    set_text(one, "reason", group.reason);
    out.push_back(std::move(one));
  }
  return out;
}

/// In a job of several hosts: where the rank runs.
void set_host(Json& object, const model::JobModel& model, std::optional<model::Rank> rank) {
  const model::Process* process =
      rank && model.hosts.size() > 1 ? model::rank_process(model, *rank) : nullptr;
  if (process != nullptr) {
    set_text(object, "host", process->host);
  }
}

Json location(const model::JobModel& model, const detectors::Location& where) {
  Json out = Json::object();
  set(out, "rank", where.rank);
  set_host(out, model, where.rank);
  out.update(place(where.file, where.line, where.function));
  set_text(out, "module", where.module);
  if (!where.ranks.empty()) {
    out["ranks"] = where.ranks.values();
  }
  set_text(out, "note", where.note);
  if (const auto groups = values_of(model, where); !groups.empty()) {
    out["values"] = values(groups);
  }
  return out;
}

Json finding(const model::JobModel& model, const detectors::Finding& found) {
  Json out = {{"kind", clean(found.kind)},
              {"confidence", detectors::confidence_name(found.confidence)},
              {"summary", clean(found.summary)},
              {"culprits", found.culprits.values()},
              {"waiting", found.waiting.values()},
              {"locations", Json::array()},
              {"evidence", Json::array()},
              {"fix", clean(found.fix)},
              {"details", Json::object()}};
  for (const detectors::Location& where : found.locations) {
    out["locations"].push_back(location(model, where));
  }
  for (const detectors::Evidence& evidence : found.evidence) {
    Json entry = Json::object();
    set(entry, "rank", evidence.rank);
    set_host(entry, model, evidence.rank);
    entry["text"] = clean(evidence.text);
    out["evidence"].push_back(std::move(entry));
  }
  for (const auto& [name, detail] : found.details) {
    out["details"][clean(name)] = value(detail);
  }
  return out;
}

Json divergent_call(const graph::DivergentCall& side) {
  Json out = {{"ranks", side.ranks.values()}, {"operation", nullptr}};
  if (!side.call) {
    return out;
  }
  const model::CollectiveCall& call = *side.call;
  if (!call.operation.empty()) {
    out["operation"] = clean(call.operation);
  }
  if (call.call_site.known()) {
    out["call_site"] = place(call.call_site.file, call.call_site.line, call.call_site.function);
  }
  set(out, "shape", call.shape);
  set(out, "count", call.count);
  set_text(out, "dtype", call.dtype);
  set_text(out, "reduce_op", call.reduce_op);
  set(out, "root", call.root);
  set(out, "splits", call.splits);
  return out;
}

Json divergence(const std::optional<graph::Divergence>& first) {
  if (!first) {
    return nullptr;
  }
  Json out = {{"sequence", first->sequence},
              {"about", graph::disagreement_name(first->about)},
              {"calls", Json::array()}};
  for (const graph::DivergentCall& side : first->calls) {
    out["calls"].push_back(divergent_call(side));
  }
  return out;
}

Json group(const graph::GroupView& view) {
  Json out = {{"id", clean(view.group.id)}};
  out["name"] = clean(view.group.name);
  out["backend"] = clean(view.group.backend);
  out["ranks"] = view.group.ranks;
  out["first_divergence"] = divergence(view.first_divergence);
  out["progress"] = Json::array();
  for (const graph::RankProgress& progress : view.progress) {
    out["progress"].push_back({{"rank", progress.rank},
                               {"enqueued", progress.enqueued},
                               {"completed", progress.completed}});
  }
  return out;
}

/// The world first, then groups with a view, then those of which only the name is known.
Json groups(const diagnosis::Diagnosis& diagnosis) {
  std::vector<graph::GroupView> views = diagnosis.examination.groups;
  for (const model::ProcessGroup& known : diagnosis.job.groups) {
    if (diagnosis.examination.group(known.id) == nullptr) {
      views.emplace_back().group = known;
    }
  }
  std::stable_partition(views.begin(), views.end(), [](const graph::GroupView& view) {
    return view.group.name == "default_pg";
  });
  Json out = Json::array();
  for (const graph::GroupView& view : views) {
    out.push_back(group(view));
  }
  return out;
}

Json wait_for(const graph::WaitForGraph& graph) {
  Json out = {
      {"nodes", strings(graph.nodes())}, {"edges", Json::array()}, {"cycles", Json::array()}};
  for (const graph::Edge& edge : graph.edges()) {
    out["edges"].push_back(
        {{"from", clean(edge.from)}, {"to", clean(edge.to)}, {"why", clean(edge.why)}});
  }
  for (const std::vector<std::string>& cycle : graph.cycles()) {
    out["cycles"].push_back(strings(cycle));
  }
  out["collectives"] = Json::array();
  for (const graph::CollectiveWait& wait : graph.collective_waits()) {
    out["collectives"].push_back({{"waiting", wait.waiting.values()},
                                  {"missing", wait.missing.values()},
                                  {"why", clean(wait.why)}});
  }
  return out;
}

Json frame(const model::Frame& known) {
  Json out = {{"language", known.language == model::Language::kPython ? "python" : "native"},
              {"function", clean(known.function)}};
  set_text(out, "file", known.file);
  if (known.line > 0) {
    out["line"] = known.line;
  }
  set_text(out, "module", known.module);
  if (!known.locals.empty()) {
    Json& locals = out["locals"] = Json::object();
    for (const auto& [name, text] : known.locals) {
      locals[clean(name)] = clean(text);
    }
  }
  return out;
}

// NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepestTree
Json stack_nodes(const std::vector<diagnosis::StackNode>& nodes, int depth) {
  Json out = Json::array();
  if (depth == kDeepestTree) {
    return out;
  }
  for (const diagnosis::StackNode& node : nodes) {
    Json entry = frame(node.frame);
    entry.erase("locals");
    entry["ranks"] = node.ranks.values();
    entry["children"] = stack_nodes(node.children, depth + 1);
    out.push_back(std::move(entry));
  }
  return out;
}

Json thread(const model::Thread& known) {
  Json out = {{"tid", std::max(known.tid, 0)},
              {"name", clean(known.name)},
              {"state", clean({&known.state, 1})}};
  set_text(out, "wchan", known.wchan);
  set(out, "gil", known.gil);
  if (known.waits_on) {
    Json& waits = out["waits_on"] = {{"kind", clean(known.waits_on->kind)}};
    set_text(waits, "target", known.waits_on->target);
    set_text(waits, "detail", known.waits_on->detail);
  }
  set_text(out, "capture", known.capture);
  out["frames"] = Json::array();
  for (const model::Frame& each : known.frames) {
    out["frames"].push_back(frame(each));
  }
  return out;
}

/// The report knows four roles; python's and torch's own helpers are "other".
model::Role report_role(model::Role role) {
  const bool helper = role == model::Role::kResourceTracker || role == model::Role::kShmManager;
  return helper ? model::Role::kOther : role;
}

Json process(const model::Process& known) {
  Json out = Json::object();
  set(out, "rank", known.rank);
  out["role"] = model::role_name(report_role(known.role));
  out["pid"] = known.pid;
  out["ppid"] = known.ppid;
  out["host"] = clean(known.host);
  out["state"] = clean({&known.state, 1});
  out["command"] = strings(known.command);
  set_text(out, "python_version", known.python_version);
  if (known.exit) {
    out["exit"] = Json::object();
    set(out["exit"], "status", known.exit->status);
    set(out["exit"], "signal", known.exit->signal);
  }
  if (!known.problems.empty()) {
    out["problems"] = strings(known.problems);
  }
  out["threads"] = Json::array();
  for (const model::Thread& each : known.threads) {
    out["threads"].push_back(thread(each));
  }
  return out;
}

Json processes(const model::JobModel& job) {
  Json out = Json::array();
  if (const model::Observation* observation = model::latest(job)) {
    for (const model::Process& known : observation->processes) {
      out.push_back(process(known));
    }
  }
  return out;
}

Json coverage(const model::JobModel& job) {
  const model::Coverage& known = job.coverage;
  Json out = {{"observed", strings(known.observed)},
              {"unobserved", strings(known.unobserved)},
              {"events_lost", known.events_lost},
              {"warnings", strings(known.warnings)}};
  if (!known.unobserved_ranks.empty()) {
    out["unobserved_ranks"] = known.unobserved_ranks.values();
  }
  if (const auto note = model::note_on_left_segments(job)) {
    out["closing"] = strings({*note});
  }
  return out;
}

}  // namespace

Json report_tree(const diagnosis::Diagnosis& diagnosis) {
  Json report = {{"schema", "ddpdoctor.report/1"},
                 {"tool", {{"name", "ddpdoctor"}, {"version", tool_version()}}},
                 {"verdict", diagnosis::verdict_name(diagnosis.verdict)}};
  report["job"] = job(diagnosis.job);
  report["findings"] = Json::array();
  for (const detectors::Finding& found : diagnosis.findings) {
    report["findings"].push_back(finding(diagnosis.job, found));
  }
  report["groups"] = groups(diagnosis);
  report["wait_for"] = wait_for(diagnosis.examination.waits);
  report["stack_diff"] = stack_nodes(diagnosis.stack_diff.roots, 0);
  report["processes"] = processes(diagnosis.job);
  report["coverage"] = coverage(diagnosis.job);
  return report;
}

std::string json(const diagnosis::Diagnosis& diagnosis) {
  return report_tree(diagnosis).dump(1) + "\n";
}

std::string_view tool_version() {
  return DDPDOCTOR_VERSION;
}

}  // namespace ddpdoctor::viewer
