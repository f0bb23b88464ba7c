// SPDX-License-Identifier: Apache-2.0
// The report, packed (html_pack.h), and what only the page shows: source lines, the timeline, the
// wait-for picture and explanations.
#include "viewer/formats/html_data.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "viewer/formats/html_pack.h"
#include "viewer/formats/report_tree.h"
#include "viewer/lanes.h"
#include "viewer/reasons.h"
#include "viewer/wait_picture.h"

namespace ddpdoctor::viewer {

namespace {

using Json = nlohmann::ordered_json;

// Size that a browser opens immediately and that a CI system accepts as an artifact.
constexpr std::size_t kLargestData = std::size_t{1900} << 10U;
// Lines before and after a relevant line.
constexpr int kContext = 2;

/// The lines around a place, as far as known.
void add_source(const model::JobModel& job, const std::string& name, int number, Json& out) {
  const auto file = job.sources.find(name);
  if (file == job.sources.end() || number <= 0) {
    return;
  }
  Json& lines = out[base::printable(name)];
  for (auto line = file->second.lower_bound(number - kContext);
       line != file->second.end() && line->first - number <= kContext; ++line) {
    lines[std::to_string(line->first)] = base::printable(line->second);
  }
}

/// The lines around every place that a finding names or that made a drawn call.
Json sources(const diagnosis::Diagnosis& diagnosis, const std::vector<GroupLanes>& groups) {
  Json out = Json::object();
  for (const detectors::Finding& finding : diagnosis.findings) {
    for (const detectors::Location& where : finding.locations) {
      add_source(diagnosis.job, where.file, where.line, out);
    }
  }
  std::set<std::pair<std::string_view, int>> drawn;
  for (const GroupLanes& group : groups) {
    for (const Lane& lane : group.lanes) {
      for (const LaneCall& call : lane.calls) {
        if (drawn.emplace(call.site.file, call.site.line).second) {
          add_source(diagnosis.job, call.site.file, call.site.line, out);
        }
      }
    }
  }
  return out;
}

Json place_of(const model::CallSite& site) {
  return {{"file", base::printable(site.file)},
          {"line", site.line},
          {"function", base::printable(site.function)}};
}

/// To the microsecond: more digits would be most of the page.
double rounded(double seconds) {
  constexpr double kMicroseconds = 1e6;
  return std::round(seconds * kMicroseconds) / kMicroseconds;
}

Json lane_call(const LaneCall& call, Table& sites) {
  Json out = {{"sequence", call.sequence},
              {"operation", base::printable(call.operation)},
              {"over", call.over}};
  if (call.begin) {
    out["begin"] = rounded(*call.begin);
  }
  if (call.end) {
    out["end"] = rounded(*call.end);
  }
  if (call.site.known()) {
    out["site"] = sites.index_of(place_of(call.site));
  }
  return out;
}

Json lane(const Lane& known, Table& sites) {
  Json calls = Json::array();
  for (const LaneCall& call : known.calls) {
    calls.push_back(lane_call(call, sites));
  }
  Json out = {{"ranks", known.ranks.ranges()}, {"calls", std::move(calls)}};
  if (!known.observed) {
    out["observed"] = false;
  }
  return out;
}

void add_lanes(const std::vector<GroupLanes>& groups, Json& report) {
  Table sites;
  report["lanes"] = Json::array();
  for (const GroupLanes& group : groups) {
    Json drawn = {{"group", base::printable(group.group)}, {"lanes", Json::array()}};
    if (group.diverges) {
      drawn["diverges"] = *group.diverges;
    }
    if (group.now) {
      drawn["now"] = rounded(*group.now);
    }
    if (group.left_out > 0) {
      drawn["left_out"] = group.left_out;
    }
    for (const Lane& known : group.lanes) {
      drawn["lanes"].push_back(lane(known, sites));
    }
    report["lanes"].push_back(std::move(drawn));
  }
  report["sites"] = sites.take();
}

/// The data of the wait-for picture.
Json waits(const diagnosis::Diagnosis& diagnosis) {
  const WaitPicture picture = wait_picture(diagnosis);
  Json out = {{"boxes", Json::array()}, {"arrows", Json::array()}};
  for (const WaitBox& box : picture.boxes) {
    Json drawn = {{"label", box.label}};
    if (!box.ranks.empty()) {
      drawn["ranks"] = box.ranks.ranges();
    }
    if (box.culprit) {
      drawn["culprit"] = true;
    }
    out["boxes"].push_back(std::move(drawn));
  }
  for (const WaitArrow& arrow : picture.arrows) {
    Json why = Json::array();
    for (const std::string& reason : arrow.why) {
      why.push_back(base::printable(reason));
    }
    out["arrows"].push_back(
        {{"from", arrow.from}, {"to", arrow.to}, {"why", why}, {"cycle", arrow.cycle}});
  }
  return out;
}

/// The text of `ddpdoctor explain` for the causes that were found.
Json explanations(const diagnosis::Diagnosis& diagnosis) {
  Json out = Json::object();
  for (const detectors::Finding& finding : diagnosis.findings) {
    if (const detectors::Detector* detector = detectors::find(finding.kind)) {
      out[finding.kind] = {{"title", detector->title},
                           {"text", std::string(base::trim(detector->explanation))}};
    }
  }
  return out;
}

/// For each finding what its page says under "Why".
Json whys(const diagnosis::Diagnosis& diagnosis) {
  Json out = Json::array();
  for (const detectors::Finding& finding : diagnosis.findings) {
    out.push_back(reasons(finding));
  }
  return out;
}

std::string packed(const diagnosis::Diagnosis& diagnosis, const Packing& packing) {
  Json report = report_tree(diagnosis);
  report["reasons"] = whys(diagnosis);
  pack_tree(report["stack_diff"]);
  pack_processes(report, packing);
  pack_groups(report["groups"]);
  pack_edges(report["wait_for"]);
  const std::vector<GroupLanes> groups = group_lanes(diagnosis);
  report["sources"] = sources(diagnosis, groups);
  report["explanations"] = explanations(diagnosis);
  report["waits"] = waits(diagnosis);
  add_lanes(groups, report);
  if (!packing.locals) {
    report["left_out"] = packing.helper_threads
                             ? "local variables are left out of this page: see report.json"
                             : "local variables and all but the main threads are left out of this "
                               "page: see report.json";
  }
  return report.dump();
}

}  // namespace

std::string html_data(const diagnosis::Diagnosis& diagnosis) {
  std::string out = packed(diagnosis, {});
  if (out.size() > kLargestData) {
    out = packed(diagnosis, {.locals = false});
  }
  if (out.size() > kLargestData) {
    out = packed(diagnosis, {.locals = false, .helper_threads = false});
  }
  return out;
}

}  // namespace ddpdoctor::viewer
