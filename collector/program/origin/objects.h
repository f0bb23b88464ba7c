// SPDX-License-Identifier: Apache-2.0
// The class of the object that an expression stands for, and the call that constructs it: by its
// assignments, the attributes that its class sets, annotations, returns of functions, and what
// callers pass. All places that give it a value must agree; otherwise the class is unknown, and
// the objects that it may be are known one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/libraries/methods.h"
#include "collector/program/origin/definitions.h"

namespace ddpdoctor::program {

/// An object by its class.
struct Object {
  enum class Kind : std::uint8_t {
    kUnknown,
    kAbsent,   // Python's None, or no value at all
    kLibrary,  // `qualified` is what constructs it: "queue.Queue", "concurrent.futures.submit"
    kUser,     // `user` is its class
    kSeveral,  // one of `either`, or an unknown one; only while it is searched for
  };
  Kind kind = Kind::kUnknown;
  std::string qualified{};
  std::string_view owner{};  // its class in the library table; empty: that has no row for it
  Definition user{};
  Node made{};  // the call that constructs it; no node: unknown, or several
  std::vector<Object> either{};
};

inline Object no_object() {
  return {.kind = Object::Kind::kAbsent};
}
Object of_library(std::string qualified, Node made);
Object of_builtin(std::string_view name, Node made = {});
bool is_same_class(const Object& a, const Object& b);
/// An expression that stands for one of two objects.
Object joined(Object a, Object b);
/// `@property`, `@functools.cached_property`.
bool is_decorated(const Scope& function, std::string_view decorator);

/// Finds objects in the known files, which must outlive it.
class Objects {
 public:
  explicit Objects(const Files& files) : files_(files) {}

  /// The object of an expression that runs in a scope of a file.
  [[nodiscard]] Object of(Node expression, const File& file, std::size_t scope) const;
  /// The objects that it may stand for, of different classes; the places that give it a value may
  /// also give it others.
  [[nodiscard]] std::vector<Object> each_of(Node expression, const File& file,
                                            std::size_t scope) const;
  /// The object through which a method of the library is reached: "os.environ" of
  /// "os.environ.get". `qualified` is the method's.
  [[nodiscard]] static Object in_library(std::string_view qualified);
  /// The class of which a name is the first parameter of a method; kNone if it is not.
  [[nodiscard]] static std::size_t class_of_self(const Definition& variable);

 private:
  struct Place {
    const File* file = nullptr;
    std::size_t scope = 0;
    int depth = 0;
    bool item = false;  // an item of the value is meant: `for q in queues`, `queues[0]`
  };

  [[nodiscard]] Object find(Node node, Place at) const;
  [[nodiscard]] Object called(Node call, Place at) const;
  /// The classes that an expression may stand for: `CLASSES[role]`, `Fast if quick else Plain`.
  void add_classes(Node node, Place at, std::vector<Definition>& out) const;
  [[nodiscard]] Object returned(const File& file, std::size_t scope, Place at) const;
  [[nodiscard]] Object variable(const Definition& is, Place at) const;
  [[nodiscard]] Object parameter(const Definition& is, std::size_t index, Place at) const;
  [[nodiscard]] Object attribute(Node node, Place at) const;
  [[nodiscard]] Object member(const Definition& owner, std::string_view name, Place at) const;
  [[nodiscard]] Object bound(const Binding& binding, Place at) const;
  [[nodiscard]] Object annotated(Node type, Place at) const;

  const Files& files_;
};

}  // namespace ddpdoctor::program
