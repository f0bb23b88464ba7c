// SPDX-License-Identifier: Apache-2.0
// JUnit XML: a green case for each cause that was looked for and not found, a failure for each that
// was. It fits the schema of Jenkins and the stricter one of Ant: a case has one failure at most.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/text.h"
#include "viewer/place.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

std::string escaped(std::string_view text) {
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

std::string failure(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding) {
  const MainPlace place = main_place(diagnosis, finding);
  std::string body =
      fmt::format("confidence: {}\n", detectors::confidence_name(finding.confidence));
  if (!place.file.empty()) {
    body += fmt::format("at: {}:{}\n", escaped(place.file), place.line);
  }
  for (const detectors::Evidence& evidence : finding.evidence) {
    body += fmt::format("why: {}\n", escaped(evidence.text));
  }
  body += fmt::format("fix: {}\n", escaped(finding.fix));
  return fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                     escaped(finding.kind), escaped(finding.summary), body);
}

/// Cases and how many of them there are.
struct Cases {
  std::string xml;
  std::size_t count = 0;
  std::size_t failures = 0;
};

void add_case(std::string_view name, std::string_view inside, Cases& cases) {
  cases.xml +=
      fmt::format("    <testcase classname=\"ddpdoctor\" name=\"{}\" time=\"0\"", escaped(name));
  cases.xml += inside.empty() ? "/>\n" : fmt::format(">\n{}    </testcase>\n", inside);
  ++cases.count;
}

/// A case of this cause; a second finding of one cause has a case of its own, "missing-rank (2)".
void add_cause(const diagnosis::Diagnosis& diagnosis, const std::string& kind, Cases& cases) {
  std::size_t found = 0;
  for (const detectors::Finding& finding : diagnosis.findings) {
    if (finding.kind == kind) {
      ++found;
      ++cases.failures;
      add_case(found == 1 ? kind : fmt::format("{} ({})", kind, found), failure(diagnosis, finding),
               cases);
    }
  }
  if (found == 0) {
    add_case(kind, {}, cases);
  }
}

/// UTC; of a job that does not say when it was looked at the beginning of time.
std::string time_of(const model::JobModel& job) {
  constexpr double kYear9999 = 253'402'300'799.0;
  const double time = job.observations.empty() ? 0 : job.observations.back().time;
  const std::chrono::sys_seconds second{
      std::chrono::seconds(static_cast<std::int64_t>(time >= 0 && time < kYear9999 ? time : 0))};
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(second - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

/// The report for people, as the output of the suite.
std::string output_of(const diagnosis::Diagnosis& diagnosis) {
  const std::string report = text(diagnosis, {});
  std::string out;
  for (const std::string_view line : base::split(report, '\n')) {
    out += escaped(line) + "\n";
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
      "  <testsuite name=\"ddpdoctor\" tests=\"{}\" failures=\"{}\" errors=\"0\" id=\"0\" "
      "package=\"ddpdoctor\" hostname=\"{}\" timestamp=\"{}\" time=\"0\">\n"
      "    <properties/>\n{}    <system-out>{}</system-out>\n    <system-err/>\n"
      "  </testsuite>\n</testsuites>\n",
      cases.count, cases.failures, escaped(host), time_of(job), cases.xml, output_of(diagnosis));
}

}  // namespace ddpdoctor::viewer
