// SPDX-License-Identifier: Apache-2.0
// The slice itself: the origin of a node from its parts. Bounded in depth and in steps.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "collector/program/origin/definitions.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

/// The place where a node is evaluated.
struct Where {
  const File* file = nullptr;
  std::size_t scope = 0;
  std::size_t statement = kNone;  // index into the file's statements; decides which guards apply
  const struct Activation* activation = nullptr;  // the call that entered the function
  std::size_t depth = 0;  // frames of the call string that were followed already
};

/// Where the source evaluates the node, without a call string.
Where where_of(const File& file, Node node);

/// The same call string, at another statement.
Where inside(const File& file, std::size_t scope, std::size_t statement, const Where& where);

/// A call that was followed into a function, and its place.
struct Activation {
  Node call;
  std::size_t scope = 0;  // scope of the function
  const File* file = nullptr;
  Where caller;
};

class Slicer {
 public:
  Slicer(const Files& files, const CallString* callers) : files_(files), callers_(callers) {}

  /// The origin of a condition or of any other expression.
  Origin value(Node node, const Where& where);
  /// The user's functions that an expression may stand for.
  std::vector<Callable> functions(Node node, const Where& where);

  /// The class of an expression's value; a library's class has a qualified name.
  Definition class_of_value(Node node, const Where& where, int depth = 0);
  /// The user's classes whose objects the value can be, also through a factory function, a
  /// conditional, or a table of classes.
  std::vector<Definition> classes_of_value(Node node, const Where& where, int depth = 0);
  /// The decisions that control whether a statement runs, but not the place of `where`.
  Origin guards(const File& file, std::size_t scope, std::size_t statement, const Where& where);
  [[nodiscard]] const Files& files() const {
    return files_;
  }
  /// How many items it has followed.
  [[nodiscard]] int steps() const {
    return steps_;
  }
  /// The origin of the restriction, if the decorator runs its function only on some ranks;
  /// `by_name` as in Origin.
  std::optional<Origin> lets_in(Node decorator, const Where& where);

 private:
  /// The same for what a user's own decorator does with the function that it is given.
  std::optional<Origin> lets_in_by(const File& file, std::size_t decorator);
  // expressions
  Origin evaluate(Node node, const Where& where);
  Origin joined(const std::vector<Node>& nodes, const Where& where);
  Origin comparison(Node node, const Where& where);
  Origin arithmetic(Node node, const Where& where);
  Origin conditional(Node node, const Where& where);
  /// Whether the value is true: for an object of the user, what its `__bool__` or `__len__`
  /// returns.
  Origin truth(Node node, const Where& where);
  Origin operands(Node node, const Where& where);
  bool is_counter(Node node, const Where& where);
  Origin subscript(Node node, const Where& where);
  Origin comprehension(Node node, const Where& where);
  // names
  Origin name(Node node, const Where& where);
  Origin defined(const Definition& definition, const Where& where, std::string_view spelled,
                 Node at);
  Origin variable(const File& file, std::size_t scope, std::string_view name, const Where& where);
  Origin bound(const Binding& binding, const File& file, std::size_t scope, const Where& where);
  Origin iterated(const Binding& binding, const Where& where);
  /// What the user's generator that a call runs yields; nothing if it runs no generator.
  std::optional<Origin> yielded(Node call, const Where& where);
  Origin attribute(Node node, const Where& where);
  Origin member(const Definition& of, std::string_view name, Node node, const Where& where,
                bool& found);
  Origin put_in_place(std::string_view name, const Where& where);
  Origin set_from_outside(const Definition& owner, std::string_view name, const Where& where);
  Origin any_member(std::string_view name, const Where& where, bool& found);
  Origin field_of(const File& file, std::size_t scope, std::string_view name, const Where& where,
                  bool& found);
  // calls
  Origin call(Node node, const Where& where);
  Origin builtin(std::string_view name, Node node, const Where& where, bool& known);
  Origin library_call(const std::string& qualified, Node node, const Where& where);
  Origin method_call(Node node, const Where& where);
  Origin value_call(Node node, const Where& where);
  Origin entered(const File& file, std::size_t scope, Node call, const Where& where);
  /// The origin of the results of all functions that a value can be, called there.
  Origin invoked(Origin callee, Node call, const Where& where);
  Origin lambda(Node node, const Where& where);
  /// `getattr(object, name)` with a computed name: the functions that it can be.
  std::optional<Origin> function_by_name(Node object, Node name, const Where& where);
  Definition class_returned(const Definition& function, int depth);
  std::vector<Definition> classes_made(Node call, const Where& where, int depth);
  std::vector<Definition> classes_named(Node node, const Where& where, int depth);
  Origin arguments(Node call, const Where& where);
  Origin parameter(const File& file, std::size_t scope, std::string_view name, const Where& where);
  Origin passed(const File& file, std::size_t scope, std::size_t index, const CallIn& call,
                const File& from, const Where& where, bool& found);
  /// The class of what all known callers pass for the parameter; unknown if they pass different
  /// ones.
  Definition class_passed(const File& file, std::size_t scope, std::string_view name, int depth);
  Origin from_stack(const File& file, std::size_t scope, std::size_t index, std::string_view called,
                    const Where& where, bool& found);
  Origin from_callers(const File& file, std::size_t scope, std::size_t index,
                      std::string_view called, const Where& where, bool& found);
  Origin from_calls_of_objects(const File& file, std::size_t scope, std::size_t index,
                               const Where& where, bool& found);
  Origin run_by(const File& from, const CallIn& call, std::size_t index, bool& found);
  Origin made_with(const File& file, std::size_t scope, std::string_view name, const Where& where,
                   bool& found);
  /// The items of an object whose class extends a container: what its constructor is given.
  Origin own_items(const File& file, std::size_t type, const Where& where);
  bool hooked(const File& file, std::size_t scope, std::size_t index, Origin& out);
  Origin environment(Node key, Node call, const Where& where);
  /// The function runs on an event (a signal, a timer): what it sets depends on that event.
  Origin run_when(const File& file, std::size_t scope);
  /// What decides whether the function is called, if every known call is under such a condition:
  /// whatever outlives the call and is set in it depends on that.
  Origin called_when(const File& file, std::size_t scope);
  /// The same for a threading.Event that such a function sets.
  Origin raised(Node event);
  bool agreed(const File& file, std::size_t scope, std::string_view name, const Where& where);

  /// Marks an item as being followed; false if it already is, or the slice is long enough.
  using Key = std::tuple<const void*, std::size_t, std::string>;
  bool enter(const Key& key);
  void leave(const Key& key);

  const Files& files_;
  const CallString* callers_;
  std::set<Key> open_;
  int steps_ = 0;
  std::size_t deep_ = 0;
};

/// The origin that decides when two values are combined.
Origin stronger(Origin a, Origin b);
Origin of(Source source);
Origin of_function(const File& file, std::size_t scope);
Origin unknown(std::string_view name);
Origin of_row(const SourceRow& row, bool by_name = false);
/// Puts a line at the front of the chain.
void add_step(Origin& origin, const File& file, Node node);
/// The same for a condition or the key of a table, which chooses between values.
void add_choice(Origin& origin, const File& file, Node node);
/// An object or a function: whatever chooses it decides what is called.
bool is_choice(const Origin& value);
/// `True`, `None`, `3`, "a": typical values of a flag.
bool is_flag(Node value);
/// The text of a plain string; empty for any other node.
std::string_view string_text(Node node);
/// The `for … in …` of the comprehension that binds a name; no node if none does.
Node bound_in_comprehension(Node name);
/// Methods of dict and torch.nn.Module that return their own elements.
bool gives_elements(std::string_view method);
/// Positional arguments and keywords of a call.
std::vector<Node> arguments_of(Node call);

}  // namespace ddpdoctor::program
