// SPDX-License-Identifier: Apache-2.0
#include "collector/values/arm_traces.h"

#include <algorithm>
#include <set>

namespace ddpdoctor::values {

namespace {

using program::Binding;
using program::BindingKind;
using program::DecisionKind;
using program::Field;
using program::Node;
using program::NodeKind;

/// The outermost loop around the decision; the decision's own statement if there is no loop.
Node region_of(Node owner, Node function) {
  Node region = owner;
  for (Node outer = owner.parent(); outer && outer != function; outer = outer.parent()) {
    if (outer.is(NodeKind::kFor) || outer.is(NodeKind::kWhile)) {
      region = outer;
    }
  }
  return region;
}

/// The statements that run only if the test is true or the exception is caught.
Node arm_of(const program::Decision& decision) {
  if (decision.kind == DecisionKind::kExcept) {
    return decision.owner;
  }
  const bool arms = decision.kind == DecisionKind::kIf || decision.kind == DecisionKind::kElif;
  return arms ? decision.owner.field(Field::kConsequence) : Node();
}

/// The binding gives the name a new value: an assignment, not `del` or an item.
bool sets(const Binding& binding) {
  return (binding.kind == BindingKind::kAssign || binding.kind == BindingKind::kAugmented) &&
         !binding.item;
}

}  // namespace

std::vector<std::string> traces_of(const std::vector<program::Binding>& bindings,
                                   const program::Scope& function,
                                   const program::Decision& decision) {
  const Node arm = arm_of(decision);
  if (!arm) {
    return {};
  }
  const Node region = region_of(decision.owner, function.node);
  std::set<std::string> inside;
  std::set<std::string> before;
  std::set<std::string> elsewhere;
  for (const Binding& binding : bindings) {
    if (binding.target.find('.') != std::string::npos || binding.kind == BindingKind::kMethod) {
      continue;
    }
    if (arm.holds(binding.node) && sets(binding)) {
      inside.insert(binding.target);
    } else if (binding.node.end() <= region.begin() && sets(binding)) {
      before.insert(binding.target);
    } else {
      elsewhere.insert(binding.target);
    }
  }
  std::vector<std::string> out;
  std::copy_if(inside.begin(), inside.end(), std::back_inserter(out), [&](const auto& name) {
    return before.contains(name) && !elsewhere.contains(name);
  });
  return out;
}

}  // namespace ddpdoctor::values
