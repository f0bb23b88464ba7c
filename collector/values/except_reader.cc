// SPDX-License-Identifier: Apache-2.0
#include "collector/values/except_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/model/observed_values.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::values {

namespace {

using program::Decision;
using program::Field;
using program::Node;
using program::NodeKind;

constexpr std::string_view kGone = "its handler has ended, and Python has deleted the exception";

Node suite_of(Node clause) {
  for (const Node child : clause.children()) {
    if (child.is(NodeKind::kBlock)) {
      return child;
    }
  }
  return {};
}

Node loop_around(Node node, Node function) {
  for (Node outer = node.parent(); outer && outer != function; outer = outer.parent()) {
    if (outer.is(NodeKind::kFor) || outer.is(NodeKind::kWhile)) {
      return outer;
    }
  }
  return {};
}

/// The handler ends with return, raise, continue or break: after it, a rank does not reach the code
/// after the `try` in the same iteration.
bool leads_away(Node clause, const UserFrame& frame) {
  const auto statements = suite_of(clause).children();
  if (statements.empty()) {
    return false;
  }
  const Node last = statements.back();
  const Node loop = loop_around(clause, frame.function.node);
  return last.is(NodeKind::kReturn) || last.is(NodeKind::kRaise) ||
         ((last.is(NodeKind::kContinue) || last.is(NodeKind::kBreak)) && loop &&
          frame.way.lies_in(loop));
}

/// The traceback of the exception passes through the body of this `try`.
bool passed(const stacks::RaisedException& exception, const UserFrame& frame, Node body) {
  return std::any_of(exception.places.begin(), exception.places.end(), [&](const auto& place) {
    return place.file == frame.frame().file && place.function == frame.frame().function &&
           place.line >= body.line() && place.line <= body.last_line();
  });
}

/// For a `try` in a loop, only the current iteration is known.
std::string none_in(Node loop) {
  return std::string(model::kNoException) + (loop ? " in this iteration" : "");
}

std::string text_of(const stacks::RaisedException& exception) {
  return model::without_secrets(exception.text.empty()
                                    ? exception.type
                                    : fmt::format("{}('{}')", exception.type, exception.text));
}

}  // namespace

Caught caught_by(const UserFrame& frame, const Decision& clause) {
  const Node whole = clause.owner.parent();
  const Node body = whole.field(Field::kBody);
  if (!whole.is(NodeKind::kTry) || !body) {
    return {.value = {}, .reason = "a try that is not understood"};
  }
  const Node loop = loop_around(clause.owner, frame.function.node);
  const bool in_hand = frame.handles != nullptr && passed(*frame.handles, frame, body);
  std::vector<Node> clauses;
  bool in_handler = false;
  bool past_handlers = false;
  for (const Node child : whole.children()) {
    if (child.is(NodeKind::kExcept)) {
      clauses.push_back(child);
      in_handler = in_handler || frame.way.lies_in(child);
    } else if (child.is(NodeKind::kElse)) {
      past_handlers = frame.way.lies_in(child);
    }
  }
  if (in_handler || (in_hand && frame.way.lies_in(whole))) {
    return in_hand ? Caught{.value = text_of(*frame.handles), .reason = {}}
                   : Caught{.value = {}, .reason = "another exception is being handled"};
  }
  if (frame.way.lies_in(body) || past_handlers) {
    return {.value = none_in(loop), .reason = {}};
  }
  if (frame.way.left_by(clause.owner)) {
    return {.value = clause.text.empty() ? "an exception" : clause.text, .reason = {}};
  }
  const bool behind = frame.way.is_past(whole);
  if (!behind && !loop) {
    return {.value = {}, .reason = "it has not been reached"};
  }
  const bool all_leave =
      std::all_of(clauses.begin(), clauses.end(), [&](Node one) { return leads_away(one, frame); });
  return behind && all_leave
             ? Caught{.value = none_in(loop), .reason = {}}
             : Caught{.value = {}, .reason = behind ? std::string(kGone) : std::string(kNotAgain)};
}

}  // namespace ddpdoctor::values
