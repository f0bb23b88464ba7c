// SPDX-License-Identifier: Apache-2.0
// GitHub Actions reads workflow commands from stdout; `%`, line ends and, in properties, `:` and
// `,` must be escaped (actions/toolkit, packages/core/src/command.ts).
#include <fmt/format.h>

#include "base/text.h"
#include "viewer/formats/text_parts.h"
#include "viewer/layout.h"
#include "viewer/place.h"
#include "viewer/render.h"
#include "viewer/values.h"

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

/// The properties of an annotation that attach it to a line; none where the file is unknown.
std::string position(std::string_view file, int line, std::string_view folder) {
  if (file.empty()) {
    return {};
  }
  const std::string where = fmt::format("file={},", escaped(relative_to(file, folder), true));
  return line > 0 ? where + fmt::format("line={},", line) : where;
}

std::string annotation(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
                       std::string_view folder) {
  const MainPlace place = main_place(finding);
  std::string message = escaped(finding.summary, false);
  if (!finding.fix.empty()) {
    message += "%0AFix: " + escaped(finding.fix, false);
  }
  return fmt::format("::{} {}title={}::{}\n", is_error(diagnosis, finding) ? "error" : "warning",
                     position(place.file, place.line, folder),
                     escaped("ddpdoctor " + finding.kind, true), message);
}

/// The line that decided, which is often the one to change.
std::string decisions(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
                      std::string_view folder) {
  std::string out;
  for (std::size_t i = 1; i < finding.locations.size(); ++i) {
    const detectors::Location& where = finding.locations[i];
    if (!where.file.empty() && where.line > 0 && !where.rank && where.ranks.empty() &&
        !where.note.empty()) {
      out += fmt::format("::notice {}title={}::{}\n", position(where.file, where.line, folder),
                         escaped("ddpdoctor " + finding.kind, true),
                         escaped(note_with_values(diagnosis.job, where), false));
    }
  }
  return out;
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
    out += decisions(diagnosis, finding, current_folder);
  }
  return out;
}

}  // namespace ddpdoctor::viewer
