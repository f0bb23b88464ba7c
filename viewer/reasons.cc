// SPDX-License-Identifier: Apache-2.0
#include "viewer/reasons.h"

#include <algorithm>

namespace ddpdoctor::viewer {

namespace {

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// The finding already shows the line of this evidence and its words.
bool is_above(const detectors::Finding& finding, const detectors::Shown& shown,
              const std::vector<std::size_t>& before) {
  const auto here = [&shown](const detectors::Location& where) {
    return where.file == shown.file && where.line == shown.line;
  };
  const auto in_note = [&shown](const detectors::Location& where) {
    return contains(where.note, shown.words);
  };
  const auto in_evidence = [&](std::size_t index) {
    return contains(finding.evidence[index].text, shown.words);
  };
  const bool listed =
      shown.file.empty() || std::any_of(finding.locations.begin(), finding.locations.end(), here);
  return listed && (contains(finding.summary, shown.words) ||
                    std::any_of(finding.locations.begin(), finding.locations.end(), in_note) ||
                    std::any_of(before.begin(), before.end(), in_evidence));
}

}  // namespace

std::vector<std::size_t> new_evidence(const detectors::Finding& finding) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < finding.evidence.size(); ++i) {
    const detectors::Evidence& evidence = finding.evidence[i];
    const bool again = evidence.text.empty() || contains(finding.summary, evidence.text) ||
                       (evidence.shown && is_above(finding, *evidence.shown, out));
    if (!again) {
      out.push_back(i);
    }
  }
  return out;
}

}  // namespace ddpdoctor::viewer
