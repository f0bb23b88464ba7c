// SPDX-License-Identifier: Apache-2.0
// SARIF 2.1.0 for code scanning. A finding without a known line has no location; GitHub shows only
// results that have one. Fingerprints contain the cause and the source, never ranks, pids or line
// numbers: the same hang tomorrow is the same alert.
#include <cstdint>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "viewer/causes.h"
#include "viewer/formats/text_parts.h"
#include "viewer/place.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

using Json = nlohmann::ordered_json;

/// FNV-1a: stable between machines and versions, which std::hash is not.
std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char character : text) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3U;
  }
  return hash;
}

/// The base of relative URIs, by the name that code scanning defines.
constexpr const char* kSourceRoot = "%SRCROOT%";

/// The page of a cause: GitHub and GitLab make an anchor of its heading.
std::string page_of(std::string_view pages, std::string_view kind) {
  return fmt::format("{}/docs/causes.md#{}", pages, kind);
}

Json rule(const std::string& kind, std::string_view pages) {
  Json out = {{"id", base::printable(kind)}};
  if (const detectors::Detector* detector = detectors::find(kind)) {
    out["shortDescription"] = {{"text", detector->title}};
    out["fullDescription"] = {{"text", fmt::format("{}.", detector->title)}};
    out["help"] = {{"text", base::trim(detector->explanation)},
                   {"markdown", explanation_markdown(*detector)}};
    if (!pages.empty()) {
      out["helpUri"] = page_of(pages, kind);
    }
    out["defaultConfiguration"] = {{"level", "error"}};
    out["properties"] = {{"precision", "high"}, {"tags", Json::array({"distributed", "hang"})}};
  }
  return out;
}

std::string level(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding) {
  if (finding.kind == "undetermined") {
    return "note";
  }
  return is_error(diagnosis, finding) ? "error" : "warning";
}

Json location(std::string_view file, int line, std::string_view note, std::string_view folder) {
  const std::string where = uri(file, folder);
  Json out = {{"physicalLocation", {{"artifactLocation", {{"uri", where}}}}}};
  if (!where.starts_with("file:")) {
    out["physicalLocation"]["artifactLocation"]["uriBaseId"] = kSourceRoot;
  }
  if (line > 0) {
    out["physicalLocation"]["region"] = {{"startLine", line}};
  }
  if (!note.empty()) {
    out["message"] = {{"text", base::printable(note)}};
  }
  return out;
}

Json result(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
            std::size_t index, std::string_view folder) {
  const auto [file, line] = main_place(finding);
  const std::string message = finding.fix.empty()
                                  ? finding.summary
                                  : fmt::format("{}. Fix: {}", finding.summary, finding.fix);
  const std::string code = source_text(diagnosis.job, file, line);
  // The folder is where the job ran or the report was written: another folder is the same cause.
  const std::string identity = fmt::format("{}|{}|{}", finding.kind, base::file_name(file),
                                           code.empty() ? std::to_string(line) : code);
  Json out = {{"ruleId", base::printable(finding.kind)},
              {"ruleIndex", index},
              {"level", level(diagnosis, finding)},
              {"message", {{"text", base::printable(message)}}},
              {"locations", Json::array()}};
  if (!file.empty()) {
    out["locations"].push_back(location(file, line, {}, folder));
  }
  Json related = Json::array();
  for (std::size_t i = 1; i < finding.locations.size(); ++i) {
    const detectors::Location& other = finding.locations[i];
    if (!other.file.empty() && other.line > 0) {
      related.push_back(location(other.file, other.line, other.note, folder));
    }
  }
  if (!related.empty()) {
    out["relatedLocations"] = std::move(related);
  }
  out["partialFingerprints"] = {
      {"causeAndLocation/v1", fmt::format("{:016x}", fingerprint(identity))}};
  return out;
}

}  // namespace

std::string_view public_pages() {
  return DDPDOCTOR_PAGES;
}

std::string sarif(const diagnosis::Diagnosis& diagnosis, std::string_view current_folder,
                  std::string_view pages) {
  std::map<std::string, std::size_t> index;
  Json rules = Json::array();
  const auto add_rule = [&](const std::string& kind) {
    if (index.emplace(kind, rules.size()).second) {
      rules.push_back(rule(kind, pages));
    }
  };
  for (const std::string& kind : diagnosis.detectors_run) {
    add_rule(kind);
  }
  for (const detectors::Finding& finding : diagnosis.findings) {
    add_rule(finding.kind);
  }
  Json results = Json::array();
  for (const detectors::Finding& finding : diagnosis.findings) {
    results.push_back(result(diagnosis, finding, index[finding.kind], current_folder));
  }
  Json driver = {{"name", "ddpdoctor"}, {"semanticVersion", tool_version()}, {"rules", rules}};
  if (!pages.empty()) {
    driver["informationUri"] = fmt::format("{}/README.md", pages);
  }
  const Json out = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       Json::array(
           {{{"tool", {{"driver", driver}}},
             {"automationDetails", {{"id", "ddpdoctor/"}}},
             {"invocations", Json::array({{{"executionSuccessful", true}}})},
             {"originalUriBaseIds",
              {{kSourceRoot, {{"description", {{"text", "the folder in which ddpdoctor ran"}}}}}}},
             {"results", results}}})}};
  return out.dump(1) + "\n";
}

}  // namespace ddpdoctor::viewer
