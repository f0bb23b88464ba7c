// SPDX-License-Identifier: Apache-2.0
// JUnit XML: a green case for each cause that was looked for and not found, a failure for each that
// was.
#include <algorithm>

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

/// One case; its failures are those findings of that kind.
std::string test_case(const diagnosis::Diagnosis& diagnosis, const std::string& kind,
                      std::size_t& failures) {
  std::string inner;
  for (const detectors::Finding& finding : diagnosis.findings) {
    if (finding.kind == kind) {
      inner += failure(diagnosis, finding);
      ++failures;
    }
  }
  const std::string head =
      fmt::format("    <testcase classname=\"ddpdoctor\" name=\"{}\"", escaped(kind));
  return inner.empty() ? head + "/>\n" : head + ">\n" + inner + "    </testcase>\n";
}

}  // namespace

std::string junit(const diagnosis::Diagnosis& diagnosis) {
  std::vector<std::string> kinds = diagnosis.detectors_run;
  for (const detectors::Finding& finding : diagnosis.findings) {
    if (std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end()) {
      kinds.push_back(finding.kind);
    }
  }
  std::size_t failures = 0;
  std::string cases;
  for (const std::string& kind : kinds) {
    cases += test_case(diagnosis, kind, failures);
  }
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", kinds.size(), failures);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite "
      "name=\"ddpdoctor\" {0}>\n{1}  </testsuite>\n</testsuites>\n",
      counts, cases);
}

}  // namespace ddpdoctor::viewer
