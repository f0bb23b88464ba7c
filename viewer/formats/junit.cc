// SPDX-License-Identifier: Apache-2.0
// JUnit XML: a failure for each cause that was found, a passed case for each that was searched and
// not found. A cause that is only possible, or could not be observed, is a skipped case. Valid with
// the schema of Jenkins and the stricter one of Ant: a case has at most one failure.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "viewer/clock.h"
#include "viewer/formats/text_parts.h"
#include "viewer/place.h"
#include "viewer/reasons.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

std::string escaped_xml(std::string_view text) {
  std::string out;
  for (const char character : base::printable(text)) {
    switch (character) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += character;
    }
  }
  return out;
}

/// The content of a finding's case.
std::string outcome(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding) {
  const MainPlace place = main_place(finding);
  std::string body =
      fmt::format("confidence: {}\n", detectors::confidence_name(finding.confidence));
  if (!place.file.empty()) {
    body += fmt::format("at: {}:{}\n", escaped_xml(place.file), place.line);
  }
  for (const std::string& reason : reasons(finding)) {
    body += fmt::format("why: {}\n", escaped_xml(reason));
  }
  body += fmt::format("fix: {}\n", escaped_xml(finding.fix));
  if (!is_error(diagnosis, finding)) {
    return fmt::format("      <skipped message=\"{}\">{}</skipped>\n", escaped_xml(finding.summary),
                       body);
  }
  return fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                     escaped_xml(finding.kind), escaped_xml(finding.summary), body);
}

/// Cases and how many of them there are.
struct Cases {
  std::string xml;
  std::size_t count = 0;
  std::size_t failures = 0;
  std::size_t skipped = 0;
};

void add_case(std::string_view name, const MainPlace& place, std::string_view inside,
              Cases& cases) {
  cases.xml += fmt::format("    <testcase classname=\"ddpdoctor\" name=\"{}\" time=\"0\"",
                           escaped_xml(name));
  if (!place.file.empty()) {
    cases.xml += fmt::format(" file=\"{}\"", escaped_xml(place.file));
    cases.xml += place.line > 0 ? fmt::format(" line=\"{}\"", place.line) : "";
  }
  cases.xml += inside.empty() ? "/>\n" : fmt::format(">\n{}    </testcase>\n", inside);
  ++cases.count;
}

/// A passed case claims that the cause was searched: a log, or some of the ranks, is not enough.
bool is_observed(const model::JobModel& job) {
  return !job.observations.empty() && job.coverage.unobserved_ranks.empty();
}

/// A case of this cause; a second finding of one cause has a case of its own, "missing-rank (2)".
void add_cause(const diagnosis::Diagnosis& diagnosis, const std::string& kind, Cases& cases) {
  std::size_t found = 0;
  for (const detectors::Finding& finding : diagnosis.findings) {
    if (finding.kind == kind) {
      ++found;
      ++(is_error(diagnosis, finding) ? cases.failures : cases.skipped);
      add_case(found == 1 ? kind : fmt::format("{} ({})", kind, found), main_place(finding),
               outcome(diagnosis, finding), cases);
    }
  }
  if (found == 0 && is_observed(diagnosis.job)) {
    add_case(kind, {}, {}, cases);
  } else if (found == 0) {
    ++cases.skipped;
    add_case(kind, {}, "      <skipped message=\"the job was not observed as a whole\"/>\n", cases);
  }
}

/// The report for people, as the output of the suite.
std::string output_of(const diagnosis::Diagnosis& diagnosis) {
  const std::string report = text(diagnosis, {});
  std::string out;
  for (const std::string_view line : base::split(report, '\n')) {
    out += escaped_xml(line) + "\n";
  }
  return out;
}

}  // namespace

std::string junit(const diagnosis::Diagnosis& diagnosis) {
  std::vector<std::string> kinds = diagnosis.detectors_run;
  for (const detectors::Finding& finding : diagnosis.findings) {
    if (std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end()) {
      kinds.push_back(finding.kind);
    }
  }
  Cases cases;
  for (const std::string& kind : kinds) {
    add_cause(diagnosis, kind, cases);
  }
  const model::JobModel& job = diagnosis.job;
  const std::string host =
      job.hosts.empty() || job.hosts.front().empty() ? "localhost" : job.hosts.front();
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"ddpdoctor\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\" "
      "id=\"0\" "
      "package=\"ddpdoctor\" hostname=\"{}\" timestamp=\"{}\" time=\"0\">\n"
      "    <properties/>\n{}    <system-out>{}</system-out>\n    <system-err/>\n"
      "  </testsuite>\n</testsuites>\n",
      cases.count, cases.failures, cases.skipped, escaped_xml(host),
      utc(job.observations.empty() ? 0 : job.observations.back().time), cases.xml,
      output_of(diagnosis));
}

}  // namespace ddpdoctor::viewer
