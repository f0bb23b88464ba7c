// SPDX-License-Identifier: Apache-2.0
// Which of the user's functions a call runs, by what the callee is: a function, a class, a method
// of an object whose class is known, an object that is called.
#pragma once

#include <vector>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {

/// A function of the user's, as a scope of a file at hand.
struct Callee {
  const File* file = nullptr;
  std::size_t scope = 0;

  [[nodiscard]] const Scope& function() const {
    return file->scopes()[scope];
  }
  bool operator==(const Callee&) const = default;
};

/// Those that a call may run: one, or a method with what overrides it. Where the class of the
/// object is not known, the only method of that name. Empty for calls of libraries.
std::vector<Callee> callees_of(Node call, const Where& where, Slicer& slicer);

}  // namespace ddpdoctor::program
