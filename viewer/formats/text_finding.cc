// SPDX-License-Identifier: Apache-2.0
// A finding in the form of a compiler error. Three columns: the place, the user's own source line,
// and the note.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "viewer/formats/text_parts.h"
#include "viewer/layout.h"
#include "viewer/reasons.h"
#include "viewer/values.h"

namespace ddpdoctor::viewer {

namespace {

// What fits on one screen beside the stack tree; --all lifts all three.
constexpr std::size_t kMostPlaces = 6;
constexpr std::size_t kMostReasons = 2;
constexpr std::size_t kMostReasonLines = 3;

constexpr std::size_t kWidestCode = 40;     // enough of a Python line to recognize it
constexpr std::size_t kNarrowestNote = 24;  // narrower notes go below the line
constexpr std::string_view kIndent = "  ";

/// A row of the table of places.
struct Place {
  std::string where;
  std::string code;
  std::string note;
};

std::string default_note(const detectors::Location& location) {
  model::RankSet ranks = location.ranks;
  if (location.rank) {
    ranks.insert(*location.rank);
  }
  if (ranks.empty()) {
    return {};
  }
  return fmt::format("{} {} here", ranks.said(), ranks.size() == 1 ? "is" : "are");
}

/// "in libnccl.so.2"; empty if the library is unknown.
std::string in_module(const detectors::Location& location) {
  return location.module.empty() ? std::string() : "in " + base::printable(location.module);
}

std::vector<Place> places_of(const diagnosis::Diagnosis& diagnosis,
                             const detectors::Finding& finding, const FileNames& names,
                             std::size_t most) {
  std::vector<Place> places;
  for (const detectors::Location& location : finding.locations) {
    const bool native = location.file.empty() && !location.function.empty();
    if ((location.file.empty() && !native) || places.size() == most) {
      continue;
    }
    if (native) {  // only a function of compiled code is known
      constexpr std::size_t kLongestName = 60;
      places.push_back({.where = base::elide(base::printable(location.function), kLongestName),
                        .code = in_module(location),
                        .note = one_line(location.note)});
      continue;
    }
    std::string code = source_text(diagnosis.job, location.file, location.line);
    if (code.empty() && !location.function.empty() && location.function != "<module>") {
      code = "in " + base::printable(location.function);
    }
    const std::string note = note_with_values(diagnosis.job, location);
    places.push_back({.where = names.place(location.file, location.line),
                      .code = std::move(code),
                      .note = note.empty() ? default_note(location) : one_line(note)});
  }
  return places;
}

std::string row(const Place& place, std::size_t where_width, std::size_t code_width,
                const TextOptions& options) {
  const std::string where = toned(
      pad(place.where, where_width),
      place.note.empty() && place.code.empty() ? Tone::kPlain : Tone::kStrong, options.colour);
  std::string line = fmt::format("{}{}{}{}", kIndent, where, kIndent,
                                 pad(fit(place.code, code_width), code_width));
  const std::size_t used = 2 * kIndent.size() + where_width + code_width + 3;
  if (place.note.empty()) {
    return std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  const bool below = used + kNarrowestNote > options.width;
  const std::size_t note_column = below ? 2 * kIndent.size() : used;
  const std::size_t note_width =
      options.width > note_column + kNarrowestNote ? options.width - note_column : kNarrowestNote;
  const std::vector<std::string> notes = wrap(place.note, note_width);
  std::string out = below ? line.substr(0, line.find_last_not_of(' ') + 1) + "\n"
                          : line + "   " + notes.front() + "\n";
  for (std::size_t i = below ? 0 : 1; i < notes.size(); ++i) {
    out += std::string(note_column, ' ') + notes[i] + "\n";
  }
  return out;
}

std::string table(const std::vector<Place>& places, const TextOptions& options) {
  std::size_t where_width = 0;
  std::size_t code_width = 0;
  for (const Place& place : places) {
    where_width = std::max(where_width, display_width(place.where));
    code_width = std::max(code_width, display_width(place.code));
  }
  code_width = std::min({code_width, kWidestCode, options.width / 2});
  std::string out;
  for (const Place& place : places) {
    out += row(place, where_width, code_width, options);
  }
  return out;
}

std::string headline(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
                     const TextOptions& options) {
  const bool error = is_error(diagnosis, finding);
  const std::string label = error ? "error: " : "warning: ";
  const std::string tag = fmt::format("[{}, {}]", base::printable(finding.kind),
                                      detectors::confidence_name(finding.confidence));
  const std::size_t room = std::max(options.width, label.size() + kNarrowestNote) - label.size();
  const std::vector<std::string> lines = wrap(one_line(finding.summary), room);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    const std::size_t used = label.size() + display_width(lines[i]);
    out += i == 0 ? toned(label, error ? Tone::kError : Tone::kWarning, options.colour)
                  : std::string(label.size(), ' ');
    out += toned(lines[i], Tone::kStrong, options.colour);
    if (last && used + 1 + display_width(tag) <= options.width) {
      out += std::string(options.width - used - display_width(tag), ' ') +
             toned(tag, Tone::kFaint, options.colour);
    } else if (last) {
      const std::size_t width = display_width(tag);
      out += "\n" + std::string(options.width > width ? options.width - width : 0, ' ') +
             toned(tag, Tone::kFaint, options.colour);
    }
    out += "\n";
  }
  return out;
}

/// "  label: text" with the following lines under the text.
std::string labelled(std::string_view label, const std::vector<std::string>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out +=
        fmt::format("{}{}{}\n", kIndent,
                    i == 0 ? std::string(label) : std::string(display_width(label), ' '), lines[i]);
  }
  return out;
}

std::string why(const detectors::Finding& finding, const TextOptions& options) {
  constexpr std::string_view kLabel = "why: ";
  const std::vector<std::string> fresh = viewer::reasons(finding);
  const std::size_t most = options.all_findings ? fresh.size() : kMostReasons;
  const std::size_t room =
      std::max(options.width, 2 * kNarrowestNote) - kIndent.size() - kLabel.size();
  std::string out;
  std::size_t said = 0;
  for (const std::string& reason : fresh) {
    if (said == most) {
      break;
    }
    std::vector<std::string> lines = wrap(reason, room);
    if (!options.all_findings && lines.size() > kMostReasonLines) {
      lines.resize(kMostReasonLines);
      lines.back() += "…";
    }
    out += labelled(said == 0 ? kLabel : std::string(kLabel.size(), ' '), lines);
    ++said;
  }
  return out;
}

std::string fix(const detectors::Finding& finding, const TextOptions& options) {
  constexpr std::string_view kLabel = "fix: ";
  const std::size_t room =
      std::max(options.width, 2 * kNarrowestNote) - kIndent.size() - kLabel.size();
  const std::string more = fmt::format("More: ddpdoctor explain {}", base::printable(finding.kind));
  if (finding.fix.empty()) {
    return fmt::format("{}{}\n", kIndent, more);
  }
  std::vector<std::string> lines = wrap(one_line(finding.fix), room);
  if (display_width(lines.back()) + 2 + display_width(more) <= room) {
    lines.back() += "  " + more;
  } else {
    lines.push_back(more);
  }
  std::string out = labelled(kLabel, lines);
  if (options.colour) {
    out.replace(kIndent.size(), kLabel.size() - 1, toned("fix:", Tone::kGood, true));
  }
  return out;
}

}  // namespace

std::string source_text(const model::JobModel& job, std::string_view file, int line) {
  const auto text = model::source_line(job, file, line);
  return text ? base::printable(base::trim(*text)) : std::string();
}

bool is_error(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding) {
  const bool wrong = diagnosis.verdict == diagnosis::Verdict::kHang ||
                     diagnosis.verdict == diagnosis::Verdict::kCrash ||
                     diagnosis.verdict == diagnosis::Verdict::kFinished ||
                     diagnosis.verdict == diagnosis::Verdict::kUndetermined;
  return wrong && finding.confidence != detectors::Confidence::kPossible &&
         finding.kind != "undetermined";
}

std::string finding_block(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
                          const FileNames& names, const TextOptions& options) {
  const std::size_t most = options.all_findings ? finding.locations.size() : kMostPlaces;
  std::string out = headline(diagnosis, finding, options);
  out += table(places_of(diagnosis, finding, names, most), options);
  if (finding.locations.size() > most) {
    out += fmt::format("{}… and {} more places: --all\n", kIndent, finding.locations.size() - most);
  }
  out += why(finding, options);
  out += fix(finding, options);
  return out;
}

}  // namespace ddpdoctor::viewer
