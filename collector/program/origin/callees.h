// SPDX-License-Identifier: Apache-2.0
// The user's functions that a call runs, by the callee: a function, a class, a method of an object
// whose class is known, or a callable object.
#pragma once

#include <string_view>
#include <vector>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {

/// A function of the user, as a scope of a known file.
struct Callee {
  const File* file = nullptr;
  std::size_t scope = 0;

  [[nodiscard]] const Scope& function() const {
    return file->scopes()[scope];
  }
  bool operator==(const Callee&) const = default;
};

/// The methods of this name, in whichever class.
std::vector<Callee> methods_named(std::string_view name, const Files& files);

/// The method of a user's class or of its first base that defines it; empty if no known file does.
std::vector<Callee> methods_of(const Definition& owner, std::string_view name, const Files& files);

/// Methods with this name in classes derived from the user's class `base`.
std::vector<Callee> overrides_of(const Definition& base, std::string_view name, const Files& files);

/// The functions that a call may run: one, or a method with its overrides. If the class of the
/// object is unknown, the only method with that name. Empty for calls into libraries.
std::vector<Callee> callees_of(Node call, const Where& where, Slicer& slicer);

}  // namespace ddpdoctor::program
