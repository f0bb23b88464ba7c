// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/call_sites/fixed_loop.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/exits.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/passing.h"
#include "collector/program/source_text.h"
#include "collector/python_source/blocks.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

/// "300", "10_000".
bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return c == '_' || std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

/// "STEPS", where the file says "STEPS = 300" and nothing else of it.
bool is_constant(std::string_view word, const Lines& lines) {
  const bool upper = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return c == '_' || std::isupper(static_cast<unsigned char>(c)) != 0 ||
           std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  bool numbers = false;
  for (const auto& [number, text] : lines) {
    std::string_view code = base::trim(std::string_view(text).substr(0, text.find('#')));
    if (!upper || !code.starts_with(word)) {
      continue;
    }
    code = base::trim(code.substr(word.size()));
    if (code.starts_with('=') && !code.starts_with("==")) {
      if (!is_number(base::trim(code.substr(1)))) {
        return false;
      }
      numbers = true;
    }
  }
  return numbers;
}

/// The function around `line` gives the name another value.
bool changes_above(const Lines& lines, int line, std::string_view name) {
  const auto extent = program::function_extent(lines, line);
  for (auto at = lines.lower_bound(extent ? extent->first + 1 : line);
       at != lines.end() && at->first < line; ++at) {
    if (program::changes(program::statement_at(lines, at->first), name)) {
      return true;
    }
  }
  return false;
}

/// A parameter of the function around `line` for which every call in the file passes one number:
/// `def epoch(steps)`, `epoch(12)`.
bool is_passed_number(std::string_view word, const Lines& lines, int line) {
  const auto parameters = program::parameters_behind(word, lines, line);
  if (parameters.size() != 1 || parameters.front().name != word ||
      changes_above(lines, line, word)) {
    return false;
  }
  const auto passed = program::arguments_for(parameters.front(), lines);
  return !passed.empty() && std::all_of(passed.begin(), passed.end(), [&](const auto& argument) {
    return argument.text == passed.front().text &&
           (is_number(argument.text) || is_constant(argument.text, lines));
  });
}

/// What stands between the parentheses of range(); nothing when there is more to it.
std::optional<std::string_view> range_of(std::string_view header) {
  constexpr std::string_view kRange = "range(";
  const std::size_t at = header.find(kRange);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = header.substr(at + kRange.size());
  const std::size_t end = rest.find(')');
  const bool nested = rest.substr(0, end).find('(') != std::string_view::npos;
  return end == std::string_view::npos || nested ? std::nullopt
                                                 : std::optional(rest.substr(0, end));
}

bool has_fixed_range(const Lines& lines, const Block& loop) {
  const auto range = loop.kind == BlockKind::kFor ? range_of(loop.text) : std::nullopt;
  if (!range) {
    return false;
  }
  const auto bounds = base::split(*range, ',');
  return std::all_of(bounds.begin(), bounds.end(), [&](std::string_view bound) {
    bound = base::trim(bound);
    return is_number(bound) || is_constant(bound, lines) ||
           is_passed_number(bound, lines, loop.line);
  });
}

/// "lines" of `for line in lines(rank)`; nothing for methods and for what is more than one call.
std::string_view called_in(const Block& loop) {
  const std::string_view text = loop.text;
  const std::size_t in = text.find(" in ");
  const std::size_t open = text.find('(', in == text.npos ? 0 : in);
  if (loop.kind != BlockKind::kFor || in == text.npos || open == text.npos ||
      text.find(')', open) + 1 != text.size()) {
    return {};
  }
  const std::string_view name = text.substr(in + 4, open - in - 4);
  return std::all_of(name.begin(), name.end(), base::is_word) ? name : std::string_view();
}

/// `def lines(…)` gives out its items in a loop of fixed length only, whatever they are.
bool gives_fixed_number(const Lines& lines, std::string_view function) {
  bool gives = false;
  for (const auto& [number, text] : lines) {
    const std::string_view code = base::trim(text);
    if (!code.starts_with("yield") || function_around(lines, number) != function) {
      continue;
    }
    const std::vector<Block> around = program::enclosing(lines, number);
    const auto deciding = python_source::deciding_branches(lines, number);
    const bool fixed = !code.starts_with("yield from") && around.size() >= 2 &&
                       has_fixed_range(lines, around[0]) &&
                       around[1].kind == BlockKind::kFunction &&
                       program::loop_exits(lines, number).empty() &&
                       std::all_of(deciding.begin(), deciding.end(), is_loop);
    if (!fixed) {
      return false;
    }
    gives = true;
  }
  return gives;
}

}  // namespace

bool is_fixed(const Lines& lines, const Block& loop, int inside) {
  const std::string_view called = called_in(loop);
  if (!has_fixed_range(lines, loop) && (called.empty() || !gives_fixed_number(lines, called))) {
    return false;
  }
  for (const Block& block : program::enclosing(lines, inside)) {
    if (block.line == loop.line) {
      break;
    }
    if (block.kind == BlockKind::kTry) {
      return false;
    }
  }
  const auto exits = program::loop_exits(lines, inside);
  return std::none_of(exits.begin(), exits.end(),
                      [&](const Block& exit) { return encloses(lines, loop, exit.line); });
}

bool is_filtered(const Lines& lines, const Block& loop, int inside) {
  for (const Block& block : python_source::deciding_branches(lines, inside)) {
    if (!is_loop(block) && block.line != loop.line && encloses(lines, loop, block.line)) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::detectors
