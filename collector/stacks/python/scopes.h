// SPDX-License-Identifier: Apache-2.0
// The names visible to the code of a running frame: its locals and cells, then globals, then
// builtins.
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

/// The names of a code object's slots, in slot order.
struct LocalNames {
  std::vector<std::string> names;
  std::vector<bool> cells;    // true: the slot holds a cell that contains the value
  std::size_t arguments = 0;  // number of positional ones, which come first

  /// The slot of a name; nothing if the code has no such local.
  [[nodiscard]] std::optional<std::size_t> slot(std::string_view name) const;
};

/// At most 256 names, printable, each of at most 64 characters.
LocalNames local_names_of(PythonObjects& objects, RemoteAddress code);

/// What a name refers to.
struct Binding {
  enum class Kind {
    kValue,
    kUnbound,  // a local without a value
    kAbsent,   // neither a local nor a global nor a builtin
  };
  Kind kind = Kind::kAbsent;
  RemoteAddress value = 0;
  bool local = false;  // belongs to the frame itself or to a closure
};

/// The parts of a function object.
struct FunctionParts {
  RemoteAddress code = 0;
  RemoteAddress globals = 0;
  RemoteAddress closure = 0;   // a tuple of cells, or 0
  RemoteAddress defaults = 0;  // a tuple, or 0
  std::string module;          // "torch.distributed.distributed_c10d"
  std::string qualname;        // "Trainer.is_main"; decorators copy it to what they return
  std::string code_name;       // name in the code that runs: "wrapper"
};

/// Nothing if the object is not a plain Python function.
std::optional<FunctionParts> function_parts(PythonObjects& objects, RemoteAddress function);

/// The names of one frame, or of a function entered without a frame.
class Scope {
 public:
  /// For a running frame; `objects` must outlive this.
  Scope(PythonObjects& objects, const RawPythonFrame& frame);
  /// For a call of `function` with these positional arguments; missing ones get their defaults.
  Scope(PythonObjects& objects, const FunctionParts& function,
        const std::vector<RemoteAddress>& arguments);

  /// Names of the positional parameters.
  [[nodiscard]] std::vector<std::string> parameters() const;

  Binding find(std::string_view name);
  /// Locals that have a value, in slot order.
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
