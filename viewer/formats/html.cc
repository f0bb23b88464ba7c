// SPDX-License-Identifier: Apache-2.0
// One page that needs nothing else: style, script and the report itself stand in it. The report is
// packed first, since a thousand ranks repeat the same frames: `frames`, `stacks` and `commands`
// become tables, threads and processes refer to them by index, rank sets of the stack tree are
// written as ranges.
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/model/questions.h"
#include "viewer/lanes.h"
#include "viewer/page/page.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

using Json = nlohmann::ordered_json;

// What a browser opens at once and a CI system keeps as an artifact.
constexpr std::size_t kLargestData = std::size_t{1900} << 10U;
// Lines before and after the one that matters.
constexpr int kContext = 2;

/// Equal values once, by index.
class Table {
 public:
  std::size_t index_of(Json value) {
    const auto [at, is_new] = known_.try_emplace(value.dump(), values_.size());
    if (is_new) {
      values_.push_back(std::move(value));
    }
    return at->second;
  }
  Json take() {
    return std::move(values_);
  }

 private:
  std::map<std::string, std::size_t> known_;
  Json values_ = Json::array();
};

void mark_user(Json& frame) {
  if (frame["language"] == "python" && frame.contains("file") &&
      model::is_user_file(frame["file"].get_ref<const std::string&>())) {
    frame["user"] = true;
  }
}

// NOLINTNEXTLINE(misc-no-recursion): the report's tree is bounded
void pack_tree(Json& nodes) {
  for (Json& node : nodes) {
    mark_user(node);
    node["ranks"] = base::ranges(node["ranks"].get<std::vector<int>>());
    pack_tree(node["children"]);
  }
}

struct Packing {
  bool locals = true;
  bool helper_threads = true;  // all but the main thread
};

void pack_processes(Json& report, const Packing& packing) {
  Table frames;
  Table stacks;
  Table commands;
  for (Json& process : report["processes"]) {
    process["command"] = commands.index_of(std::move(process["command"]));
    Json& threads = process["threads"];
    if (!packing.helper_threads && threads.size() > 1) {
      threads.erase(threads.begin() + 1, threads.end());
    }
    for (Json& thread : threads) {
      Json stack = Json::array();
      for (Json& frame : thread["frames"]) {
        mark_user(frame);
        if (!packing.locals) {
          frame.erase("locals");
        }
        stack.push_back(frames.index_of(std::move(frame)));
      }
      thread["frames"] = stacks.index_of(std::move(stack));
    }
  }
  report["frames"] = frames.take();
  report["stacks"] = stacks.take();
  report["commands"] = commands.take();
}

/// The lines around every place that a finding names.
Json sources(const diagnosis::Diagnosis& diagnosis) {
  Json out = Json::object();
  for (const detectors::Finding& finding : diagnosis.findings) {
    for (const detectors::Location& where : finding.locations) {
      const auto file = diagnosis.job.sources.find(where.file);
      if (file == diagnosis.job.sources.end() || where.line <= 0) {
        continue;
      }
      Json& lines = out[base::printable(where.file)];
      for (auto line = file->second.lower_bound(where.line - kContext);
           line != file->second.end() && line->first - where.line <= kContext; ++line) {
        lines[std::to_string(line->first)] = base::printable(line->second);
      }
    }
  }
  return out;
}

Json lane_call(const LaneCall& call) {
  Json out = {{"sequence", call.sequence},
              {"operation", base::printable(call.operation)},
              {"over", call.over}};
  if (call.begin) {
    out["begin"] = *call.begin;
  }
  if (call.end) {
    out["end"] = *call.end;
  }
  if (call.site.known()) {
    out["site"] = {{"file", base::printable(call.site.file)},
                   {"line", call.site.line},
                   {"function", base::printable(call.site.function)}};
  }
  return out;
}

Json lanes(const diagnosis::Diagnosis& diagnosis) {
  Json out = Json::array();
  for (const GroupLanes& group : group_lanes(diagnosis)) {
    Json drawn = {{"group", base::printable(group.group)}, {"lanes", Json::array()}};
    if (group.diverges) {
      drawn["diverges"] = *group.diverges;
    }
    if (group.left_out > 0) {
      drawn["left_out"] = group.left_out;
    }
    for (const Lane& lane : group.lanes) {
      Json calls = Json::array();
      for (const LaneCall& call : lane.calls) {
        calls.push_back(lane_call(call));
      }
      drawn["lanes"].push_back({{"ranks", lane.ranks.ranges()}, {"calls", std::move(calls)}});
    }
    out.push_back(std::move(drawn));
  }
  return out;
}

std::string packed(const diagnosis::Diagnosis& diagnosis, const Packing& packing) {
  Json report = Json::parse(json(diagnosis));
  pack_tree(report["stack_diff"]);
  pack_processes(report, packing);
  report["sources"] = sources(diagnosis);
  report["lanes"] = lanes(diagnosis);
  if (!packing.locals) {
    report["left_out"] = packing.helper_threads
                             ? "local variables are left out of this page: see report.json"
                             : "local variables and all but the main threads are left out of this "
                               "page: see report.json";
  }
  return report.dump();
}

std::string data(const diagnosis::Diagnosis& diagnosis) {
  std::string out = packed(diagnosis, {});
  if (out.size() > kLargestData) {
    out = packed(diagnosis, {.locals = false});
  }
  if (out.size() > kLargestData) {
    out = packed(diagnosis, {.locals = false, .helper_threads = false});
  }
  return out;
}

/// No "<" is left, so nothing in it can end the script element or begin a comment. JSON has "<" in
/// strings only, where the escape means the same.
std::string inside_script(std::string_view json_text) {
  std::string out;
  out.reserve(json_text.size() + json_text.size() / 16);
  for (const char c : json_text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

/// Appends `page` up to `marker` and steps over it.
void append_until(std::string_view& page, std::string_view marker, std::string& out) {
  const std::size_t at = page.find(marker);
  out.append(page.substr(0, at));
  page.remove_prefix(at == std::string_view::npos ? page.size() : at + marker.size());
}

}  // namespace

std::string html(const diagnosis::Diagnosis& diagnosis) {
  std::string_view page = kPage;
  std::string out;
  append_until(page, "@@STYLE@@", out);
  out.append(kPageStyle);
  append_until(page, "@@DATA@@", out);
  out += inside_script(data(diagnosis));
  append_until(page, "@@LANES@@", out);
  out.append(kPageLanes);
  append_until(page, "@@GROUPS@@", out);
  out.append(kPageGroups);
  append_until(page, "@@PROCESSES@@", out);
  out.append(kPageProcesses);
  append_until(page, "@@SCRIPT@@", out);
  out.append(kPageScript);
  out.append(page);
  return out;
}

}  // namespace ddpdoctor::viewer
