// SPDX-License-Identifier: Apache-2.0
// The names that code of a running frame sees: its locals and cells, then globals, then builtins.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

/// Names of a code object's slots, in the order of the slots.
struct LocalNames {
  std::vector<std::string> names;
  std::vector<bool> cells;    // the slot holds a cell around the value
  std::size_t arguments = 0;  // positional ones, the first of the names

  /// The slot of a name; nothing when the code has no such local.
  [[nodiscard]] std::optional<std::size_t> slot(std::string_view name) const;
};

/// At most 256 names, printable, each of at most 64 characters.
LocalNames local_names_of(PythonObjects& objects, RemoteAddress code);

/// Where a name leads.
struct Binding {
  enum class Kind {
    kValue,
    kUnbound,  // a local that has no value now
    kAbsent,   // neither a local, nor a global, nor built in
  };
  Kind kind = Kind::kAbsent;
  RemoteAddress value = 0;
  bool local = false;  // of the frame itself or of a closure
};

/// What a function object is made of.
struct FunctionParts {
  RemoteAddress code = 0;
  RemoteAddress globals = 0;
  RemoteAddress closure = 0;   // a tuple of cells, or 0
  RemoteAddress defaults = 0;  // a tuple, or 0
  std::string module;          // "torch.distributed.distributed_c10d"
  std::string qualname;        // "Trainer.is_main"; decorators give it to what they return
  std::string code_name;       // of the code that runs: "wrapper"
};

/// Nothing when the object is no plain Python function.
std::optional<FunctionParts> function_parts(PythonObjects& objects, RemoteAddress function);

/// Names of one frame, or of a function that is entered without a frame.
class Scope {
 public:
  /// Of a running frame; `objects` must outlive this.
  Scope(PythonObjects& objects, const RawPythonFrame& frame);
  /// Of a call of `function` with these positional arguments; missing ones take their defaults.
  Scope(PythonObjects& objects, const FunctionParts& function,
        const std::vector<RemoteAddress>& arguments);

  /// Names of the positional parameters.
  [[nodiscard]] std::vector<std::string> parameters() const;

  Binding find(std::string_view name);
  /// Locals that have a value, in the order of their slots.
  std::vector<std::pair<std::string, RemoteAddress>> locals();

 private:
  RemoteAddress slot_value(std::size_t slot, RemoteAddress content);

  PythonObjects& objects_;
  LocalNames names_;
  std::vector<RemoteAddress> slots_;
  RemoteAddress namespace_ = 0;  // f_locals of a module or class body
  RemoteAddress globals_ = 0;
  RemoteAddress builtins_ = 0;
};

}  // namespace ddpdoctor::stacks
