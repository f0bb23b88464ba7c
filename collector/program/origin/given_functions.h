// SPDX-License-Identifier: Apache-2.0
// The user's functions that a library calls: methods of classes that extend a library's class, and
// functions or callable objects that a call hands to a library.
#pragma once

#include <string>
#include <vector>

#include "collector/program/origin/callees.h"

namespace ddpdoctor::program {

struct GivenFunction {
  Callee callee;
  // Handed to a library: it is called with what the library has, an item or a result. Otherwise
  // the method of a class that extends one of a library.
  bool handed = false;
  std::string keyword{};  // under which it was handed over: "compute_metrics"
};

/// Those that no call of the user's runs by their name.
std::vector<GivenFunction> given_functions(const Files& files);

/// The class is a library's, or extends one.
bool is_of_library(const Definition& type, const Files& files);

}  // namespace ddpdoctor::program
