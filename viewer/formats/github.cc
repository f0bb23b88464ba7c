// SPDX-License-Identifier: Apache-2.0
// GitHub Actions reads workflow commands from stdout; `%`, line ends and, in properties, `:` and
// `,` must be escaped (actions/toolkit, packages/core/src/command.ts).
#include <fmt/format.h>

#include "base/text.h"
#include "viewer/formats/text_parts.h"
#include "viewer/layout.h"
#include "viewer/place.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char character : one_line(text)) {
    if (character == '%' || (property && (character == ':' || character == ','))) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(character));
    } else {
      out += character;
    }
  }
  return out;
}

std::string annotation(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
                       std::string_view folder) {
  const MainPlace place = main_place(diagnosis, finding);
  std::string where;
  if (!place.file.empty()) {
    where =
        fmt::format("file={},line={},", escaped(relative_to(place.file, folder), true), place.line);
  }
  const std::string message = finding.fix.empty()
                                  ? finding.summary
                                  : fmt::format("{}. Fix: {}", finding.summary, finding.fix);
  return fmt::format("::{} {}title={}::{}\n", is_error(diagnosis, finding) ? "error" : "warning",
                     where, escaped("ddpdoctor " + finding.kind, true), escaped(message, false));
}

}  // namespace

std::string github(const diagnosis::Diagnosis& diagnosis, std::string_view current_folder) {
  if (diagnosis.findings.empty()) {
    return fmt::format("::notice title=ddpdoctor::{}",
                       escaped(verdict_line(diagnosis, {}), false)) +
           "\n";
  }
  std::string out;
  for (const detectors::Finding& finding : diagnosis.findings) {
    out += annotation(diagnosis, finding, current_folder);
  }
  return out;
}

}  // namespace ddpdoctor::viewer
