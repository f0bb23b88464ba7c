// SPDX-License-Identifier: Apache-2.0
// Names in an expression and the bindings that give them values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/program/questions/code.h"
#include "collector/program/syntax/bindings.h"

namespace ddpdoctor::program {

/// "a", "b", "c" of a.b.c; calls and subscripts end a chain.
struct NameChain {
  std::vector<std::string_view> words;
  Node node;               // the whole chain
  bool called = false;     // a.b.c()
  bool of_result = false;  // .b.c of f().b.c or a[0].b.c

  [[nodiscard]] std::string dotted() const;
};

/// The longest chains, in source order; omits names of keyword arguments and names inside strings.
std::vector<NameChain> name_chains(Node expression);

/// Assignments, augmented assignments, := and `for` that give a name ("stop", "self.is_main") a
/// value in `function` (kNone: at module level). Attributes are searched in the whole file.
std::vector<Binding> values_of(const Code& code, std::string_view name, std::size_t function);

/// The return values of every `def name` in the file.
std::vector<Node> returns_of(const Code& code, std::string_view name);

/// Calls `visit` with every call of a file.
template <class Visit>
void each_call(Node root, const Visit& visit) {
  for (Node child = root.first_child(); child; child = child.next_sibling()) {
    if (child.is(NodeKind::kCall)) {
      visit(child);
    }
    each_call(child, visit);
  }
}

}  // namespace ddpdoctor::program
