// SPDX-License-Identifier: Apache-2.0
// The report for an issue or a pull request: every finding with its places as a table, the stacks
// as a block.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/text.h"
#include "viewer/formats/text_parts.h"
#include "viewer/layout.h"
#include "viewer/render.h"
#include "viewer/values.h"

namespace ddpdoctor::viewer {

namespace {

bool is_word(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0;
}

/// Text in a table cell or paragraph: nothing of it is taken for markup. An underscore inside a
/// word is none, "#10" must not become a link to somebody's issue 10, nor "@team" a message to
/// them.
std::string escaped(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*{}[]<>|";
  const std::string line = one_line(text);
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool word_before = i > 0 && is_word(line[i - 1]);
    const bool word_after = i + 1 < line.size() && is_word(line[i + 1]);
    if (kMarkup.find(line[i]) != std::string_view::npos ||
        (line[i] == '_' && !(word_before && word_after))) {
      out += '\\';
    }
    out += line[i];
    if ((line[i] == '#' || line[i] == '@') && word_after) {
      out += "<!-- -->";
    }
  }
  return out;
}

/// Text as code: fenced by one more backtick than it holds in a row. A bar would end a table cell
/// even in code.
std::string code(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  std::string inner;
  std::size_t run = 0;
  std::size_t longest = 0;
  for (const char character : one_line(text)) {
    run = character == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    inner += character == '|' ? std::string("\\|") : std::string(1, character);
  }
  const std::string fence(longest + 1, '`');
  return longest == 0 ? fence + inner + fence : fence + " " + inner + " " + fence;
}

std::string finding_section(const diagnosis::Diagnosis& diagnosis,
                            const detectors::Finding& finding, const FileNames& names) {
  std::string out = fmt::format("### {}\n\n{} ({})\n\n", escaped(finding.summary),
                                code(finding.kind), detectors::confidence_name(finding.confidence));
  if (!finding.locations.empty()) {
    out += "| where | source | |\n|---|---|---|\n";
    for (const detectors::Location& location : finding.locations) {
      const std::string where = location.file.empty() ? base::printable(location.function)
                                                      : names.place(location.file, location.line);
      out += fmt::format("| {} | {} | {} |\n", code(where),
                         code(source_text(diagnosis.job, location.file, location.line)),
                         escaped(note_with_values(diagnosis.job, location)));
    }
    out += "\n";
  }
  for (const detectors::Evidence& evidence : finding.evidence) {
    out += fmt::format("- {}\n", escaped(reason_text(evidence)));
  }
  out +=
      fmt::format("{}**Fix:** {}\n\n", finding.evidence.empty() ? "" : "\n", escaped(finding.fix));
  return out;
}

}  // namespace

std::string markdown(const diagnosis::Diagnosis& diagnosis) {
  const FileNames names = file_names(diagnosis);
  std::string out = fmt::format("## ddpdoctor: {}\n\n", diagnosis::verdict_name(diagnosis.verdict));
  for (const std::string& sentence : diagnosis.job.coverage.unobserved) {
    out += fmt::format("> not observed: {}\n", escaped(sentence));
  }
  for (const std::string& sentence : diagnosis.job.coverage.warnings) {
    out += fmt::format("> note: {}\n", escaped(sentence));
  }
  if (out.ends_with("\n") && !out.ends_with("\n\n")) {
    out += "\n";
  }
  if (diagnosis.findings.empty()) {
    out += escaped(verdict_line(diagnosis, {})) + "\n\n";
  }
  for (const detectors::Finding& finding : diagnosis.findings) {
    out += finding_section(diagnosis, finding, names);
  }
  if (const std::string stacks = stack_block(diagnosis, names, {}); !stacks.empty()) {
    out += "```text\n" + stacks + "```\n";
  }
  return out;
}

}  // namespace ddpdoctor::viewer
