// SPDX-License-Identifier: Apache-2.0
// Combines the origins of the parts of a value, and extends the chain of lines that shows an
// origin.
#include <algorithm>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kMostSteps = 12;     // lines shown in a chain
constexpr std::size_t kMostVariables = 8;  // environment variables
constexpr std::size_t kMostCallables = 6;  // functions that one value may hold

OriginStep step_of(const File& file, Node node) {
  constexpr std::size_t kLongest = 100;
  std::string text = node.one_line();
  text.resize(std::min(text.size(), kLongest));
  return {.file = file.path == nullptr ? std::string() : *file.path,
          .line = node.line(),
          .text = std::move(text)};
}

}  // namespace

Origin of(Source source) {
  return {.source = source};
}

Origin unknown(std::string_view name) {
  Origin out{.source = Source::kUnknown};
  out.unknown = std::string(name);
  return out;
}

Origin of_row(const SourceRow& row, bool by_name) {
  return {.source = row.source, .by_name = by_name, .number = row.number};
}

Origin stronger(Origin a, Origin b) {
  const bool second = b.source > a.source || (b.source == a.source && a.by_name && !b.by_name);
  Origin& out = second ? b : a;
  Origin& other = second ? a : b;
  // The combination counts as an option only if both parts do.
  out.like_an_option =
      out.like_an_option && (other.source < Source::kUnknown || other.like_an_option);
  out.object = out.object || other.object;
  if (!out.none || (other.none && other.none->source > out.none->source)) {
    out.none = other.none ? std::move(other.none) : std::move(out.none);
  }
  for (std::string& variable : other.variables) {
    if (out.variables.size() < kMostVariables &&
        std::find(out.variables.begin(), out.variables.end(), variable) == out.variables.end()) {
      out.variables.push_back(std::move(variable));
    }
  }
  if (out.unknown.empty()) {
    out.unknown = std::move(other.unknown);
  }
  for (const Callable& one : other.callables) {
    if (out.callables.size() < kMostCallables &&
        std::find(out.callables.begin(), out.callables.end(), one) == out.callables.end()) {
      out.callables.push_back(one);
    }
  }
  return std::move(out);
}

void add_step(Origin& origin, const File& file, Node node) {
  if (origin.chain.size() >= kMostSteps || !node) {
    return;
  }
  if (!origin.chain.empty() && origin.chain.front().line == node.line() &&
      (file.path == nullptr || origin.chain.front().file == *file.path)) {
    return;
  }
  origin.chain.insert(origin.chain.begin(), step_of(file, node));
}

void add_choice(Origin& origin, const File& file, Node node) {
  if (node && origin.chain.size() < kMostSteps) {
    origin.chain.insert(origin.chain.begin(), step_of(file, node));
    origin.chain.front().chooses = true;
  }
}

bool is_choice(const Origin& value) {
  return value.object && !is_own(value.source);
}

bool is_flag(Node value) {
  value = without_parentheses(value);
  switch (value.kind()) {
    case NodeKind::kTrue:
    case NodeKind::kFalse:
    case NodeKind::kNone:
    case NodeKind::kInteger:
    case NodeKind::kString:
      return true;
    case NodeKind::kUnary:
      return value.field(Field::kArgument).is(NodeKind::kInteger);
    default:
      return false;
  }
}

std::string_view string_text(Node node) {
  node = without_parentheses(node);
  if (!node.is(NodeKind::kString)) {
    return {};
  }
  std::string_view text;
  int parts = 0;
  for (const Node part : node.children()) {
    if (part.is(NodeKind::kInterpolation)) {
      return {};
    }
    if (part.is(NodeKind::kStringContent)) {
      text = part.text();
      ++parts;
    }
  }
  return parts == 1 ? text : std::string_view();
}

}  // namespace ddpdoctor::program
