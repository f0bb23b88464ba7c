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
  kAssign,     // x = value; also one of several targets
  kAugmented,  // x += value
  kNamed,      // (x := value)
  kFor,        // for x in value; a comprehension's own names are none
  kWith,       // with value as x
  kExcept,     // except value as x
  kImport,
  kDefine,  // def x, class x
  kDelete,
  kCapture,  // case [x, *rest], case … as x
  kMethod,   // x.append(…): a method call, which may change what x holds
};

/// One place that may change what a name stands for, or what it holds.
struct Binding {
  BindingKind kind = BindingKind::kAssign;
  std::string
      target;         // "x", "self.stop"; of a subscript what it is taken of: "todo" of todo[0] = 1
  bool item = false;  // only an item of the target: todo[0] = 1
  Node value{};       // absent where there is none: imports, del, def
  bool unpacked = false;  // the target gets a piece of the value: a, b = value
  Node node{};            // the target as written; of a method call the call
  int line = 0;
  std::size_t statement = kNone;
};

/// Those in a scope itself, without the scopes inside it, in the order of the source.
std::vector<Binding> bindings_of(const SourceIndex& index, const Scope& scope);

/// Those of one statement, without its suite.
std::vector<Binding> bindings_at(const SourceIndex& index, std::size_t statement);

/// `a.b.c` of names and attributes only, without blanks; empty for anything else.
std::string dotted_name(Node expression);

/// The binding may change the value of a name or a dotted path: itself, an item of it, or what it
/// is reached through ("self.cfg" for "self.cfg.stop").
bool may_change(const Binding& binding, std::string_view path);

}  // namespace ddpdoctor::program
