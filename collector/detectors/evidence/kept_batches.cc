// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/kept_batches.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/syntax/bindings.h"

namespace ddpdoctor::detectors {
namespace {

using program::Field;
using program::Node;
using program::NodeKind;

using Names = std::set<std::string, std::less<>>;

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Methods that return the same memory; all others create new memory.
bool shares_memory(std::string_view method) {
  constexpr std::array<std::string_view, 9> kMethods = {
      "detach", "view", "reshape", "squeeze", "unsqueeze", "cpu", "numpy", "items", "values"};
  return is_one_of(method, kMethods);
}

bool keeps(std::string_view method) {
  constexpr std::array<std::string_view, 6> kMethods = {"append",     "extend", "add",
                                                        "appendleft", "insert", "update"};
  return is_one_of(method, kMethods);
}

/// The expression contains one of `names` itself: not a function's result, not an index.
bool holds(Node node, const Names& names) {
  switch (node.kind()) {
    case NodeKind::kName:
      return names.contains(node.text());
    case NodeKind::kAttribute:
    case NodeKind::kSubscript:
      return holds(node.field(node.is(NodeKind::kAttribute) ? Field::kObject : Field::kValue),
                   names);
    case NodeKind::kCall: {
      const Node callee = node.field(Field::kFunction);
      return callee.is(NodeKind::kAttribute) &&
             shares_memory(callee.field(Field::kAttribute).text()) &&
             holds(callee.field(Field::kObject), names);
    }
    case NodeKind::kLambda:
    case NodeKind::kString:
      return false;
    default: {
      const auto inside = node.children();
      return std::any_of(inside.begin(), inside.end(),
                         [&names](Node child) { return holds(child, names); });
    }
  }
}

bool any_holds(Node arguments, const Names& names) {
  const auto all = arguments.children();
  return std::any_of(all.begin(), all.end(), [&names](Node argument) {
    const bool named = argument.is(NodeKind::kKeywordArgument);
    return holds(named ? argument.field(Field::kValue) : argument, names);
  });
}

/// `kept.append(images)` anywhere in an expression.
bool appends(Node node, const Names& names) {
  const Node callee = node.is(NodeKind::kCall) ? node.field(Field::kFunction) : Node();
  if (callee.is(NodeKind::kAttribute) && keeps(callee.field(Field::kAttribute).text()) &&
      any_holds(node.field(Field::kArguments), names)) {
    return true;
  }
  const auto inside = node.is(NodeKind::kBlock) ? std::vector<Node>() : node.children();
  return std::any_of(inside.begin(), inside.end(),
                     [&names](Node child) { return appends(child, names); });
}

/// `kept.append(images)`, `self.cache[step] = batch`, `history += [labels]`; a plain `x = batch`
/// only adds a name.
bool is_kept_by(const program::SourceIndex& index, std::size_t statement, Names& names) {
  Names more;
  for (const program::Binding& one : program::bindings_at(index, statement)) {
    const bool assigns = one.kind == program::BindingKind::kAssign;
    const Node list = one.kind == program::BindingKind::kAugmented ? one.value : Node();
    if ((assigns && one.item && holds(one.value, names)) ||
        (list.is(NodeKind::kList) && holds(list, names))) {
      return true;
    }
    if (assigns && holds(one.value, names)) {
      more.insert(one.target);
    }
  }
  names.merge(more);
  return appends(index.statements()[statement].node, names);
}

int keeping_line(const program::SourceText& lines, int line) {
  const program::SourceIndex& index = program::index_of(lines);
  const auto all = index.statements();
  std::size_t around = lines.contains(line) ? index.statement_at(line) : program::kNone;
  around = around == program::kNone ? around : all[around].parent;
  for (; around != program::kNone && !all[around].node.is(NodeKind::kFunction);
       around = all[around].parent) {
    if (!all[around].node.is(NodeKind::kFor)) {
      continue;
    }
    Names names;
    for (const program::Binding& one : program::bindings_at(index, around)) {
      if (one.kind == program::BindingKind::kFor) {
        names.insert(one.target);
      }
    }
    for (std::size_t i = around + 1; i < all[around].end; ++i) {
      if (is_kept_by(index, i, names)) {
        return all[i].line;
      }
    }
  }
  return 0;
}

}  // namespace

model::CallSite keeps_batches(const model::JobModel& job, const model::Thread& thread) {
  for (const model::Frame* frame : model::user_frames(thread)) {
    if (const int line = keeping_line(lines_of(job, frame->file), frame->line); line > 0) {
      return {.file = frame->file, .line = line, .function = frame->function};
    }
  }
  return {};
}

model::CallSite chooses_file_system(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (model::is_user_file(file) && text.find("set_sharing_strategy(") != std::string::npos &&
          text.find("file_system") != std::string::npos &&
          text.find('#') > text.find("set_sharing_strategy(")) {
        return {.file = file, .line = number, .function = function_around(lines, number)};
      }
    }
  }
  return {};
}

}  // namespace ddpdoctor::detectors
