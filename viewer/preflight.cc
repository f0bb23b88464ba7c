// SPDX-License-Identifier: Apache-2.0
#include "viewer/preflight.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "viewer/layout.h"

namespace ddpdoctor::viewer {
namespace {

constexpr std::size_t kLevelWidth = 9;
constexpr std::size_t kNameWidth = 18;

Tone tone_of(preflight::Level level) {
  switch (level) {
    case preflight::Level::kOk:
      return Tone::kGood;
    case preflight::Level::kUnknown:
      return Tone::kFaint;
    case preflight::Level::kWarning:
      return Tone::kWarning;
    case preflight::Level::kBreaks:
      return Tone::kError;
  }
  return Tone::kPlain;
}

/// A remark with the check it belongs to.
struct Row {
  const preflight::Check* check = nullptr;
  const preflight::Remark* remark = nullptr;
};

std::vector<Row> rows_of(const std::vector<preflight::Answer>& answers) {
  std::vector<Row> rows;
  for (const preflight::Answer& answer : answers) {
    for (const preflight::Remark& remark : answer.remarks) {
      rows.push_back({.check = answer.check, .remark = &remark});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.remark->level > b.remark->level; });
  return rows;
}

/// `text` wrapped behind a column of `indent` blanks; the first line continues `out`.
void append_wrapped(std::string& out, const std::string& text, std::size_t indent,
                    std::size_t width) {
  const auto lines = wrap(text, width > indent + 20 ? width - indent : 20);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += (i == 0 ? "" : std::string(indent, ' ')) + lines[i] + "\n";
  }
}

std::string last_line(const std::vector<Row>& rows) {
  const auto count = [&rows](preflight::Level level) {
    return std::count_if(rows.begin(), rows.end(),
                         [level](const Row& row) { return row.remark->level == level; });
  };
  const auto breaks = count(preflight::Level::kBreaks);
  const auto warnings = count(preflight::Level::kWarning);
  const auto unknown = count(preflight::Level::kUnknown);
  return fmt::format("{} {}, {} {}, {} ok{}\n", breaks, breaks == 1 ? "error" : "errors", warnings,
                     warnings == 1 ? "warning" : "warnings", count(preflight::Level::kOk),
                     unknown == 0 ? "" : fmt::format(", {} unknown", unknown));
}

}  // namespace

std::string preflight_text(const std::vector<preflight::Answer>& answers, std::size_t width,
                           bool colour) {
  std::string out;
  const auto rows = rows_of(answers);
  for (const Row& row : rows) {
    const preflight::Remark& remark = *row.remark;
    out +=
        toned(pad(preflight::level_name(remark.level), kLevelWidth), tone_of(remark.level), colour);
    out += pad(row.check->name, kNameWidth);
    append_wrapped(out, one_line(remark.what), kLevelWidth + kNameWidth, width);
    if (!remark.fix.empty()) {
      out.append(kLevelWidth + kNameWidth, ' ').append("fix: ");
      append_wrapped(out, one_line(remark.fix), kLevelWidth + kNameWidth + 5, width);
    }
  }
  return out + last_line(rows);
}

std::string preflight_json(const std::vector<preflight::Answer>& answers) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Row& row : rows_of(answers)) {
    checks.push_back({{"check", row.check->name},
                      {"title", row.check->title},
                      {"level", preflight::level_name(row.remark->level)},
                      {"what", row.remark->what},
                      {"fix", row.remark->fix}});
  }
  const nlohmann::ordered_json whole{{"schema", "ddpdoctor.check/1"},
                                     {"will_break", preflight::will_break(answers)},
                                     {"checks", std::move(checks)}};
  return whole.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddpdoctor::viewer
