// SPDX-License-Identifier: Apache-2.0
// Finds the function in a source file that a code object was compiled from.
#include <vector>

#include "collector/values/from_syntax.h"
namespace ddpdoctor::values {

using program::Field;
using program::Node;
using program::NodeKind;

Node function_at(Node root, int first_line, std::string_view qualname) {
  const std::string_view name = qualname.substr(qualname.rfind('.') + 1);
  const NodeKind wanted = name == "<lambda>" ? NodeKind::kLambda : NodeKind::kFunction;
  Node found;
  std::vector<Node> open{root};
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    const Node outer = node.parent().is(NodeKind::kDecorated) ? node.parent() : node;
    if (outer.line() > first_line || outer.last_line() < first_line) {
      continue;
    }
    const bool named = wanted == NodeKind::kLambda || node.field(Field::kName).text() == name;
    if (node.is(wanted) && outer.line() == first_line && named) {
      if (found) {
        return {};
      }
      found = node;
    }
    for (const Node child : node.children()) {
      open.push_back(child);
    }
  }
  return found;
}

}  // namespace ddpdoctor::values
