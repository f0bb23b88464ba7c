// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/launches.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "collector/graph/activity_rules.h"
#include "collector/graph/history.h"
#include "collector/graph/launched_call.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/choices.h"
#include "collector/program/questions/code.h"

namespace ddpdoctor::detectors {
namespace {

using program::Callee;
using program::Definition;
using program::Field;
using program::Node;
using program::Where;

constexpr std::size_t kMostKept = 16;  // collectives of one function

const program::SourceText& any_text(const model::JobModel& job) {
  static const program::SourceText kNone;
  return job.sources.empty() ? kNone : job.sources.begin()->second;
}

/// `group=g`, or one more argument than a call on the default group needs: `all_reduce(x, op, g)`.
bool names_a_group(Node call, std::string_view function) {
  const std::size_t needed = function == "barrier" ? 0 : 2;
  std::size_t positional = 0;
  for (const Node argument : call.field(Field::kArguments).children()) {
    if (!argument.is(program::NodeKind::kKeywordArgument)) {
      ++positional;
    } else if (argument.field(Field::kName).text() == "group") {
      return true;
    }
  }
  return positional > needed;
}

/// Every call inside a node, inner ones first, without those in functions defined there.
void calls_inside(Node node, std::vector<Node>& out) {
  for (const Node child : node.children()) {
    if (!child.is(program::NodeKind::kFunction) && !child.is(program::NodeKind::kClass) &&
        !child.is(program::NodeKind::kLambda)) {
      calls_inside(child, out);
    }
  }
  if (node.is(program::NodeKind::kCall)) {
    out.push_back(node);
  }
}

/// A row of the library tables for a call that is not a user function.
const program::CallRow* row_of(const Definition& is) {
  return is.kind == Definition::Kind::kLibrary ? program::call_of_name(is.qualified) : nullptr;
}

}  // namespace

Launches::Launches(const model::JobModel& job)
    : job_(job),
      files_(any_text(job), job.sources),
      slicer_(files_, nullptr),
      objects_(files_),
      forwards_(files_),
      ddp_(graph::wraps_in_ddp(job)) {}

Where Launches::where_in(const program::File& file, std::size_t scope, Node node) {
  return {.file = &file, .scope = scope, .statement = file.facts->index->statement_of(node)};
}

std::optional<Launch> Launches::made_by(Node call, const Where& where) const {
  const Node callee = call.field(Field::kFunction);
  const std::string dotted = program::dotted_name(callee);
  const std::string name(callee.is(program::NodeKind::kAttribute)
                             ? callee.field(Field::kAttribute).text()
                             : std::string_view(dotted));
  Launch launch{.operation = {},
                .site = {.file = where.file->path == nullptr ? std::string() : *where.file->path,
                         .line = call.line(),
                         .function = where.file->scopes()[where.scope].qualified}};
  if (name == "backward" && callee.is(program::NodeKind::kAttribute)) {
    launch.operation = ddp_ ? "all_reduce" : "";
  } else if (!dotted.empty()) {
    const graph::Operation* const operation = graph::operation_called(*where.file->text, dotted);
    const Definition is = files_.resolve(*where.file, where.scope, dotted);
    const program::CallRow* const row = operation == nullptr ? row_of(is) : nullptr;
    if (operation != nullptr && !names_a_group(call, name)) {
      launch.operation = std::string(operation->operation);
    } else if (row != nullptr && row->name == "new_group") {
      launch.operation = "new_group";
      launch.is = Launch::Is::kNewGroup;
    } else if (row != nullptr && program::makes_collective(row->does)) {
      launch.operation = std::string(row->collective);
    }
  }
  if (launch.operation.empty()) {
    const auto forward = forwards_.of(callee, *where.file, where.scope);
    if (!forward) {
      return std::nullopt;
    }
    launch.operation = forward->operation;
    launch.is = forward->unshards ? Launch::Is::kUnshards : Launch::Is::kDdpForward;
    return launch;
  }
  if (graph::is_point_to_point(launch.operation)) {
    launch.is = Launch::Is::kMessage;
  }
  return launch;
}

std::vector<Callee> Launches::callees(Node call, const Where& where) {
  auto found = program::callees_of(call, where, slicer_);
  const Node callee = program::without_parentheses(call.field(Field::kFunction));
  if (found.empty() && callee.is(program::NodeKind::kAttribute)) {
    for (const program::Object& one :
         objects_.each_of(callee.field(Field::kObject), *where.file, where.scope)) {
      const auto methods =
          one.kind == program::Object::Kind::kUser
              ? program::methods_of(one.user, callee.field(Field::kAttribute).text(), files_)
              : std::vector<Callee>{};
      found.insert(found.end(), methods.begin(), methods.end());
    }
  }
  std::erase_if(found, [](const Callee& one) {
    return one.file->path == nullptr || !model::is_user_file(*one.file->path);
  });
  return found;
}

std::vector<Launch> Launches::of(Node call, const Where& where) {
  if (auto own = made_by(call, where)) {
    return {std::move(*own)};
  }
  std::vector<Launch> out;
  for (const Callee& one : callees(call, where)) {
    const auto& inside = of_function(one);
    out.insert(out.end(), inside.begin(), inside.end());
  }
  return out;
}

const std::vector<Launch>& Launches::of_function(const Callee& callee) {
  const auto [at, fresh] = known_.try_emplace({callee.file, callee.scope});
  if (!fresh) {
    return at->second;  // empty while it is being analysed: a recursive call
  }
  const program::Scope& function = callee.function();
  std::vector<Node> calls;
  calls_inside(function.body ? function.body : function.node, calls);
  std::vector<Launch> found;
  for (const Node call : calls) {
    const Where where = where_in(*callee.file, callee.scope, call);
    for (Launch& one : of(call, where)) {
      if (found.size() < kMostKept) {
        found.push_back(std::move(one));
      }
    }
  }
  return known_[{callee.file, callee.scope}] = std::move(found);
}

const std::vector<std::string>& Launches::always(const Callee& callee) {
  const auto [at, fresh] = always_.try_emplace({callee.file, callee.scope});
  if (!fresh) {
    return at->second;  // empty while it is being analysed: a recursive call
  }
  const program::Behind all = program::behind(*callee.file->text, callee.function(), 0);
  std::set<std::uint32_t> chosen;
  for (const program::Choice& choice : all.choices) {
    for (const Node call : choice.if_taken) {
      chosen.insert(call.id());
    }
    // What is after a loop is reached by its exit alone, but always.
    for (const Node call :
         program::loops(choice.decision.kind) ? std::vector<Node>{} : choice.if_not) {
      chosen.insert(call.id());
    }
  }
  std::vector<std::string> found;
  for (const program::CallBehind& one : all.calls) {
    const Where where = where_in(*callee.file, callee.scope, one.call);
    if (chosen.contains(one.call.id()) || found.size() >= kMostKept) {
      continue;
    }
    if (const auto own = made_by(one.call, where)) {
      found.push_back(own->operation);
      continue;
    }
    const auto inside = callees(one.call, where);
    const auto more = inside.size() == 1 ? always(inside.front()) : std::vector<std::string>{};
    found.insert(found.end(), more.begin(), more.end());
  }
  std::sort(found.begin(), found.end());
  return always_[{callee.file, callee.scope}] = std::move(found);
}

}  // namespace ddpdoctor::detectors
