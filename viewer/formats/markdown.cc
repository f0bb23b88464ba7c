// SPDX-License-Identifier: Apache-2.0
// The report for an issue or a pull request: every finding with its places as a table, the stacks
// as a block.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/left_segments.h"
#include "collector/model/questions.h"
#include "viewer/clock.h"
#include "viewer/formats/text_parts.h"
#include "viewer/layout.h"
#include "viewer/reasons.h"
#include "viewer/render.h"
#include "viewer/values.h"

namespace ddpdoctor::viewer {

namespace {

constexpr std::size_t kLongestCommand = 200;

bool is_word(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0;
}

/// Text outside code, with all markup escaped. An underscore inside a word is harmless; "#10" must
/// not become a link to an unrelated issue 10, nor "@team" a message to them.
std::string escaped_words(std::string_view line) {
  constexpr std::string_view kMarkup = "\\`*{}[]<>|";
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

/// Text as code: enclosed in one more backtick than its longest run of backticks. A bar would end a
/// table cell even in code.
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

/// The end of "all_reduce #41" or "#41" that begins at `at`; `at` where there is none.
std::size_t end_of_call(std::string_view line, std::size_t at) {
  std::size_t hash = at;
  while (hash < line.size() && (is_word(line[hash]) || line[hash] == '_')) {
    ++hash;
  }
  hash += hash > at && hash < line.size() && line[hash] == ' ' ? 1 : 0;
  if (hash >= line.size() || line[hash] != '#') {
    return at;
  }
  std::size_t end = hash + 1;
  while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) {
    ++end;
  }
  return end == hash + 1 ? at : end;
}

/// A sentence in a table cell or paragraph: text in backquotes, and calls by their number,
/// are code; the rest is not markup.
std::string escaped_markdown(std::string_view text) {
  const std::string line = one_line(text);
  std::string out;
  std::string words;
  const auto add_code = [&](std::string_view inner) {
    out += escaped_words(words) + code(inner);
    words.clear();
  };
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t closing = line[i] == '`' ? line.find('`', i + 1) : std::string::npos;
    const bool begins_word = i == 0 || (!is_word(line[i - 1]) && line[i - 1] != '_');
    const std::size_t call = begins_word ? end_of_call(line, i) : i;
    if (closing != std::string::npos && closing > i + 1) {
      add_code(std::string_view(line).substr(i + 1, closing - i - 1));
      i = closing + 1;
    } else if (call > i) {
      add_code(std::string_view(line).substr(i, call - i));
      i = call;
    } else {
      words += line[i++];
    }
  }
  return out + escaped_words(words);
}

/// "`torchrun train.py` · 4 ranks · 2026-09-21T14:13:20Z"; empty if all parts are unknown.
std::string job_line(const model::JobModel& job) {
  std::string out;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : " · ") + part; };
  if (!job.command.empty()) {
    add(code(base::elide(fmt::format("{}", fmt::join(job.command, " ")), kLongestCommand)));
  }
  if (const std::size_t ranks = model::all_ranks(job).size(); ranks > 0) {
    add(fmt::format("{} {}", ranks, ranks == 1 ? "rank" : "ranks"));
  }
  if (const auto time = observed_at(job)) {
    add(*time);
  }
  return out;
}

std::string finding_section(const diagnosis::Diagnosis& diagnosis,
                            const detectors::Finding& finding, const FileNames& names) {
  std::string out = fmt::format("### {}\n\n{} ({})\n\n", escaped_markdown(finding.summary),
                                code(finding.kind), detectors::confidence_name(finding.confidence));
  if (!finding.locations.empty()) {
    out += "| where | source | |\n|---|---|---|\n";
    for (const detectors::Location& location : finding.locations) {
      const std::string where = location.file.empty() ? base::printable(location.function)
                                                      : names.place(location.file, location.line);
      out += fmt::format(
          "| {} | {} | {} |\n", code(where),
          code(location.file.empty() ? base::printable(location.module)
                                     : source_text(diagnosis.job, location.file, location.line)),
          escaped_markdown(note_with_values(diagnosis.job, location)));
    }
    out += "\n";
  }
  const std::vector<std::string> why = reasons(finding);
  for (const std::string& reason : why) {
    out += fmt::format("- {}\n", escaped_markdown(reason));
  }
  out += fmt::format("{}**Fix:** {}\n\n", why.empty() ? "" : "\n", escaped_markdown(finding.fix));
  out += fmt::format("More: {}\n\n", code("ddpdoctor explain " + finding.kind));
  return out;
}

}  // namespace

std::string markdown(const diagnosis::Diagnosis& diagnosis) {
  const FileNames names = file_names(diagnosis);
  std::string out = fmt::format("## ddpdoctor: {}\n\n", diagnosis::verdict_name(diagnosis.verdict));
  if (const std::string line = job_line(diagnosis.job); !line.empty()) {
    out += line + "\n\n";
  }
  for (const std::string& sentence : diagnosis.job.coverage.unobserved) {
    out += fmt::format("> not observed: {}\n", escaped_markdown(sentence));
  }
  for (const std::string& sentence : diagnosis.job.coverage.warnings) {
    out += fmt::format("> note: {}\n", escaped_markdown(sentence));
  }
  if (out.ends_with("\n") && !out.ends_with("\n\n")) {
    out += "\n";
  }
  if (diagnosis.findings.empty()) {
    out += escaped_markdown(verdict_line(diagnosis, {})) + "\n\n";
  }
  for (const detectors::Finding& finding : diagnosis.findings) {
    out += finding_section(diagnosis, finding, names);
  }
  if (const std::string stacks = stack_block(diagnosis, names, {}); !stacks.empty()) {
    out += "<details><summary>Call stacks by rank</summary>\n\n```text\n" + stacks +
           "```\n\n</details>\n";
  }
  if (const auto note = model::note_on_left_segments(diagnosis.job)) {
    out += fmt::format("\n> note: {}\n", escaped_markdown(*note));
  }
  return out;
}

}  // namespace ddpdoctor::viewer
