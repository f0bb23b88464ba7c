// SPDX-License-Identifier: Apache-2.0
#include "viewer/causes.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "viewer/layout.h"

namespace ddpdoctor::viewer {
namespace {

using detectors::Detector;
using detectors::Effect;

struct Group {
  Effect effect;
  const char* title;
};

constexpr std::array<Group, 5> kGroups{{
    {Effect::kHang, "The job hangs"},
    {Effect::kCrash, "The job or a rank dies"},
    {Effect::kWrongNumbers, "The job computes nonsense"},
    {Effect::kSlow, "Slow, not hung"},
    {Effect::kLeak, "Something is left behind or runs out"},
}};

std::vector<const Detector*> members(Effect effect) {
  std::vector<const Detector*> out;
  for (const Detector* detector : detectors::catalog()) {
    if (detector->effect == effect) {
      out.push_back(detector);
    }
  }
  return out;
}

constexpr std::size_t kPageWidth = 118;  // columns of a file of docs/
constexpr std::size_t kTerminalWidth = 100;

bool begins_item(std::string_view line) {
  return line.starts_with("- ") || line.starts_with("* ");
}

/// Paragraphs filled to a width; indented code stays as it is.
std::string filled(std::string_view explanation, std::size_t width) {
  std::string out;
  std::string paragraph;
  const auto end_paragraph = [&] {
    for (const std::string& line : wrap(paragraph, width)) {
      out += paragraph.empty() ? "" : line + "\n";
    }
    paragraph.clear();
  };
  for (const std::string_view line : base::split(base::trim(explanation), '\n')) {
    const bool apart = line.empty() || line.starts_with(' ') || begins_item(line);
    if (apart) {
      end_paragraph();
    }
    if (line.empty() || line.starts_with(' ')) {
      out += fmt::format("{}\n", line);
    } else {
      paragraph += fmt::format("{}{}", paragraph.empty() ? "" : " ", line);
    }
  }
  end_paragraph();
  return out;
}

/// Text and indented code of an explanation: code becomes a diff block.
std::string markdown_of(std::string_view explanation) {
  std::string out;
  bool code = false;
  const std::string text = filled(explanation, kPageWidth);
  for (const std::string_view line : base::split(base::trim(text), '\n')) {
    const bool indented = line.starts_with("    ") || (code && line.starts_with("  "));
    if (indented != code && !(code && line.empty())) {
      out += indented ? (out.ends_with("\n\n") ? "```diff\n" : "\n```diff\n") : "```\n";
      code = indented;
    }
    out += fmt::format("{}\n", code && line.size() >= 4 ? line.substr(4) : line);
  }
  return out + (code ? "```\n" : "");
}

}  // namespace

std::string causes_list() {
  std::size_t width = 0;
  for (const Detector* detector : detectors::catalog()) {
    width = std::max(width, detector->kind.size());
  }
  std::string out;
  for (const Group& group : kGroups) {
    const auto kinds = members(group.effect);
    out += kinds.empty() ? "" : fmt::format("{}{}\n", out.empty() ? "" : "\n", group.title);
    for (const Detector* detector : kinds) {
      out += fmt::format("  {:<{}}  {}\n", detector->kind, width, detector->title);
    }
  }
  return out + "\nddpdoctor explain KIND: what you see, why, how it is recognised, the fix\n";
}

std::string cause_page(const Detector& detector) {
  return fmt::format("{}: {}\n\n{}", detector.kind, detector.title,
                     filled(detector.explanation, kTerminalWidth));
}

std::string explanation_markdown(const Detector& detector) {
  return markdown_of(detector.explanation);
}

std::string causes_markdown() {
  std::string out =
      "# Causes\n\nMade by `./dev docs` from the detectors: edit the explanation in "
      "`collector/detectors/KIND.cc`.\nThe same pages: `ddpdoctor explain KIND`.\n";
  for (const Group& group : kGroups) {
    const auto kinds = members(group.effect);
    out += kinds.empty() ? "" : fmt::format("\n## {}\n", group.title);
    for (const Detector* detector : kinds) {
      out += fmt::format("\n### {}\n\n{}.\n\n{}", detector->kind, detector->title,
                         markdown_of(detector->explanation));
    }
  }
  return out;
}

}  // namespace ddpdoctor::viewer
