// SPDX-License-Identifier: Apache-2.0
// A small interpreter for expressions over the memory of another process. It always terminates and
// has no side effects. Names, attributes, items, comparisons, arithmetic and truth follow Python's
// rules; properties and functions that only return an expression are entered. Of other calls only a
// few are known, by their function object and not by their name in the source. Anything else is
// unknown, with a reason. Memory may change during the read or be corrupt: every read and all work
// is bounded.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/model/collective.h"
#include "collector/stacks/python/attributes.h"
#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/scopes.h"
#include "collector/values/cpu_clock.h"
#include "collector/values/expression.h"
#include "collector/values/known_calls.h"
#include "collector/values/value.h"

namespace ddpdoctor::values {

/// The expression that a function returns, if its body does nothing else: for the source at this
/// file and line. Null if it does more.
using FunctionBodies = std::function<const Expression*(const std::string& file, int first_line,
                                                       std::string_view name)>;

/// The number in a one-element tensor in CPU memory.
using TensorItem = std::function<std::optional<Value>(RemoteAddress tensor)>;

/// What the file system answers now to a question of os.path, os or pathlib.Path about a path.
using FileQuestions =
    std::function<std::optional<Value>(std::string_view question, const std::string& path)>;

/// The names that an expression sees: a scope, and the arguments of an entered function.
struct Names {
  stacks::Scope* scope = nullptr;
  std::map<std::string, Value, std::less<>> bound{};
};

/// The state of a call to a Python function at its first statement.
struct Entry {
  std::string file;
  int first_line = 0;    // from its code object
  std::string name;      // from its code object, independent of decorators
  std::string qualname;  // with its enclosing classes and functions, if they are its own
  stacks::Scope scope;   // scope of the function itself
  std::map<std::string, Value, std::less<>> bound;  // values of its parameters
  std::map<std::string, std::size_t> parts{};  // the part of the call that passed each parameter
};

class Evaluator {
 public:
  /// `objects` must outlive this.
  Evaluator(stacks::PythonObjects& objects, ProcessFacts facts)
      : objects_(objects), attributes_(objects), facts_(std::move(facts)) {}

  void set_bodies(FunctionBodies bodies) {
    bodies_ = std::move(bodies);
  }
  void set_tensor_item(TensorItem item) {
    tensor_item_ = std::move(item);
  }
  void set_files(FileQuestions files) {
    files_ = std::move(files);
  }
  /// After this CPU time of the thread, no further expression is evaluated.
  void set_deadline(CpuClock::time_point deadline) {
    deadline_ = deadline;
  }

  /// The value of an expression in a scope.
  Value evaluate(const Expression& expression, stacks::Scope& scope);
  /// The same, with the parameters of an entered function.
  Value evaluate(const Expression& expression, Names& names);
  /// The attributes that the last evaluation read, and the names in functions it entered.
  [[nodiscard]] const std::set<std::string>& read() const {
    return read_;
  }
  /// Why the last evaluation says how things are now and not how they were; empty when it does not.
  [[nodiscard]] const std::string& only_now() const {
    return only_now_;
  }
  /// The function that a call in a scope would enter. `argument` may replace the value of an
  /// argument (by the index of the part of the call). Nothing if the call does not reach a Python
  /// function.
  std::optional<Entry> enter(const Expression& call, Names& names,
                             const std::function<Value(std::size_t part, Value value)>& argument);
  /// What the source says of an entered function: the expression it returns, or kYielded; null if
  /// it does more.
  [[nodiscard]] const Expression* body_of(const Entry& entry) const {
    return bodies_ ? bodies_(entry.file, entry.first_line, entry.name) : nullptr;
  }
  /// The number of items of a loop over the value; nothing if only running code could tell.
  std::optional<std::uint64_t> items_in(const Value& value);
  /// bool(value).
  Value truth(const Value& value);
  /// len(value).
  Value length_of(const Value& value) {
    return length(value, 0);
  }
  /// The object at this address; plain values are read.
  Value load(RemoteAddress object);
  /// Module and name of a function that is written in C; empty for other objects.
  std::pair<std::string, std::string> builtin_function(RemoteAddress function);
  /// A text on one line for people, at most `limit` characters: Python's spelling of plain values,
  /// the class of an object; independent of memory addresses.
  std::string text(const Value& value, std::size_t limit = 64);
  /// The value is plain or consists of plain values: its text is complete.
  bool says_all(const Value& value);

  /// Items of a list or tuple, values of a dict; nothing where there are more than `limit`.
  std::optional<std::vector<Value>> elements(const Value& value, std::size_t limit);
  std::optional<std::vector<Value>> values_of_dict(const Value& dict, std::size_t limit);
  /// A function that a call reaches: "Plain.close", with its place "Plain.close (parts.py:18)".
  model::CallSite reached_function(RemoteAddress function);
  /// The deadline has passed.
  [[nodiscard]] bool late() const {
    return deadline_ && CpuClock::now() >= *deadline_;
  }

  [[nodiscard]] stacks::Attributes& attributes() {
    return attributes_;
  }

 private:
  Value node(const Expression& expression, Names& names, int depth);
  Value literal(const Expression& expression);
  Value name(const Expression& expression, Names& names);
  Value boolean_operation(const Expression& expression, Names& names, int depth);
  Value comparison(const Expression& expression, Names& names, int depth);
  Value sequence(const Expression& expression, Names& names, int depth);
  bool tired();

  // attribute_access.cc
  Value attribute(const Value& of, const std::string& name, int depth);
  Value attribute_of_made(const Value& of, const std::string& name, int depth);
  Value subscript(const Value& of, const Value& key);
  Value item_of_dict(RemoteAddress dict, const Value& key);
  Value environment_variable(RemoteAddress environ, const Value& key);
  bool is_environment(RemoteAddress object);
  bool is_builtin(const Value& value);
  std::optional<std::vector<Value>> items(const Value& value, std::size_t limit);

  // comparisons.cc
  Value compare(std::string_view operation, const Value& left, const Value& right);
  Value identical(const Value& left, const Value& right);
  std::optional<bool> equal(const Value& left, const Value& right, int depth);
  std::string_view sequence_kind(const Value& value);
  Value contains(const Value& container, const Value& item);
  Value as_plain(const Value& value);
  Value length(const Value& value, int depth);
  bool has_python_method(RemoteAddress object, std::string_view method);
  bool is_python_all_through(RemoteAddress object);

  // comprehension.cc
  Value comprehension(const Expression& expression, Names& names, int depth);
  std::optional<Value> iterated(const std::string& type, const std::vector<Value>& arguments);
  Value any_or_all(const Value& of, bool any);
  Value sum(const Value& of);

  // file_calls.cc
  std::optional<std::string> path_text(const Value& value);
  Value as_path(std::string text);
  std::optional<Value> file_answer(std::string_view module, std::string_view name,
                                   const std::vector<Value>& arguments);

  // cached_calls.cc
  Value call_cached(RemoteAddress wrapper, std::vector<Value> arguments, int depth);
  bool is_cached_for(RemoteAddress key, const std::vector<Value>& arguments);

  // calls.cc
  std::optional<stacks::FunctionParts> user_function(RemoteAddress function);
  std::string file_of(const stacks::FunctionParts& parts);
  std::optional<Value> forward_of(const Value& module);
  Entry entry_of(const stacks::FunctionParts& parts, std::vector<Value> arguments,
                 const std::vector<std::string>& keywords);
  Value call(const Expression& expression, Names& names, int depth);
  Value call_function(RemoteAddress function, std::vector<Value> arguments,
                      const std::vector<std::string>& keywords, int depth);
  std::optional<Value> known_function(std::string_view module, std::string_view name,
                                      const std::vector<Value>& arguments);
  Value call_builtin(RemoteAddress function, const std::vector<Value>& arguments, int depth);
  std::optional<Value> make(RemoteAddress type, std::vector<Value> arguments,
                            std::vector<std::string> keywords, int depth);
  Value call_class(RemoteAddress type, const std::vector<Value>& arguments);
  Value call_method_of_builtin(const std::string& name, const Value& self,
                               const std::vector<Value>& arguments);
  Value is_instance(const Value& value, const Value& type);
  std::string name_of_function(RemoteAddress function);

  // text.cc
  std::string object_text(RemoteAddress object, int depth);

  stacks::PythonObjects& objects_;
  stacks::Attributes attributes_;
  ProcessFacts facts_;
  FunctionBodies bodies_;
  TensorItem tensor_item_;
  FileQuestions files_;
  std::optional<CpuClock::time_point> deadline_;
  std::set<std::string> read_;
  std::string only_now_;
  int steps_ = 0;
  int entered_ = 0;  // functions being evaluated
};

/// The reason why a call of this function has no value: "it calls time, which reads the clock".
std::string call_reason(std::string_view module, std::string_view name);

}  // namespace ddpdoctor::values
