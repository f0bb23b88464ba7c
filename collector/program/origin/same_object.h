// SPDX-License-Identifier: Apache-2.0
// Whether two expressions stand for one object: by the variable and the attributes that lead to it,
// through local aliases (`guard = self.guard`), and by the call that constructs it. Names alone
// prove nothing: two classes of one file may each have a `self.guard`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "collector/program/origin/definitions.h"
#include "collector/program/origin/objects.h"

namespace ddpdoctor::program {

/// The way to an object: ".guard" from a class, a module or a function's variable.
struct ObjectPath {
  const File* file = nullptr;  // null: not a path of names
  std::size_t scope = 0;       // the class, if it begins with a method's own object
  std::string path{};
  Node made{};  // the call that constructs the object; no node: unknown, or several
};

ObjectPath path_to(Node expression, const File& file, std::size_t scope, const Files& files);

enum class SameObject : std::uint8_t { kNo, kUnknown, kYes };

/// kNo only for objects of two constructor calls. kYes counts the objects of one class as one.
SameObject is_same_object(const ObjectPath& a, const ObjectPath& b);

}  // namespace ddpdoctor::program
