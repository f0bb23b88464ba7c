// SPDX-License-Identifier: Apache-2.0
// Where names, attributes and items get new values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

enum class BindingKind : std::uint8_t {
  kAssign,     // x = value; also each of several targets
  kAugmented,  // x += value
  kNamed,      // (x := value)
  kFor,        // for x in value; except names local to a comprehension
  kWith,       // with value as x
  kExcept,     // except value as x
  kImport,
  kDefine,  // def x, class x
  kDelete,
  kCapture,  // case [x, *rest], case … as x
  kMethod,   // x.append(…): a method call, which may change what x holds
};

/// One place that may change which object a name refers to, or the content of that object.
struct Binding {
  BindingKind kind = BindingKind::kAssign;
  std::string target;     // "x", "self.stop"; for a subscript, its object: "todo" of todo[0] = 1
  bool item = false;      // changes only an item of the target: todo[0] = 1
  Node value{};           // null if there is none: imports, del, def
  bool unpacked = false;  // the target gets a part of the value: a, b = value
  Node node{};            // the target as written; for a method call, the call
  int line = 0;
  std::size_t statement = kNone;
};

/// The bindings of a scope itself, without the scopes inside it, in source order.
std::vector<Binding> bindings_of(const SourceIndex& index, const Scope& scope);

/// The bindings of one statement, without its suite.
std::vector<Binding> bindings_at(const SourceIndex& index, std::size_t statement);

/// `a.b.c` of names and attributes only, without blanks; empty for other expressions.
std::string dotted_name(Node expression);

/// The binding may change the value of a name or dotted path: the path itself, an item of it, or a
/// prefix ("self.cfg" for "self.cfg.stop").
bool may_change(const Binding& binding, std::string_view path);

}  // namespace ddpdoctor::program
