// SPDX-License-Identifier: Apache-2.0
// What the user's program hands to a framework by a decision of each rank's own. A framework runs
// the same code on every rank: where it leads ranks to different calls, one of these led it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

struct HandedOver {
  enum class As : std::uint8_t {
    kValue,      // a function that the framework calls returns a value of the rank's own
    kFlag,       // it returns one of several constants
    kCalled,     // it calls a method of its framework's class, or leaves that out
    kNothing,    // it returns None or something else
    kItem,       // it puts an item into what the framework gets, or leaves it out
    kAttribute,  // an attribute of an object of the framework is set, or not
  };
  As as = As::kNothing;
  std::string name;  // of the item or attribute, or of the keyword that the function was given by
  std::string function;              // "Collate.__call__"
  OriginStep decides;                // the condition; for a value, the `return`
  Source source = Source::kUnknown;  // kUnknown: perhaps the same on every rank
};

/// All of them; `users` are the sources of the user alone. Empty for a program that is too large to
/// follow all of its decisions.
std::vector<HandedOver> handed_over(const Sources& users);

}  // namespace ddpdoctor::program
