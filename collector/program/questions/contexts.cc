// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/contexts.h"

#include <algorithm>

#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

/// `torch.no_grad()`, `no_grad`: a decorator may be written without a call.
bool is_gradient_free(std::string_view expression) {
  const auto calls = calls_in(expression);
  const std::string_view name = last_name(calls.empty() ? expression : calls.front().callee);
  const CallRow* row = call_of_context(name);
  return row != nullptr && row->does == CallDoes::kFreesOfGradients;
}

/// The last name of a callee: "no_sync" of `self.net.no_sync()`.
std::string_view called_name(Node call) {
  const Node callee = call.field(Field::kFunction);
  return callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute).text() : callee.text();
}

/// `with model.join():`, `stack.enter_context(model.join())`.
bool is_entered(Node call) {
  for (Node at = call.parent(); at && !at.is(NodeKind::kBlock) && at.parent() != at;
       at = at.parent()) {
    if (at.is(NodeKind::kWithItems) ||
        (at.is(NodeKind::kCall) && called_name(at) == "enter_context")) {
      return true;
    }
  }
  return false;
}

/// `with Join([model]):`, `with model.join():`, `with model.no_sync():`
bool makes_steps_unlike(Node call) {
  const std::string_view name = called_name(call);
  const CallRow* row = call_of_context(name);
  if (row == nullptr) {
    return false;
  }
  // Threads, strings and paths have a join(), too, and are not entered.
  const bool is_class = row->name.empty();
  return row->does == CallDoes::kHoldsGradients ||
         (row->does == CallDoes::kShields && (is_class || is_entered(call)));
}

}  // namespace

bool is_without_gradients(const SourceText& text, int line) {
  const auto around = enclosing(text, line);
  const auto decorators = decorators_of(text, line);
  const auto frees = [](const Block& block) { return is_gradient_free(block.condition); };
  return std::any_of(around.begin(), around.end(),
                     [&frees](const Block& block) {
                       return block.kind == BlockKind::kWith && frees(block);
                     }) ||
         std::any_of(decorators.begin(), decorators.end(), frees);
}

bool has_unlike_steps(const SourceText& text) {
  bool found = false;
  each_call(index_of(text).root(),
            [&found](Node call) { found = found || makes_steps_unlike(call); });
  return found;
}

}  // namespace ddpdoctor::program
