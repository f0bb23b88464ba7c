// SPDX-License-Identifier: Apache-2.0
// One call line that ran different functions: a class that a table gives each rank, a callback that
// only some have, a function that was replaced under a test of the rank. The line is the same on
// all ranks; the choice of its receiver decides who makes the collective.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/partings/cause.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {

struct Dispatch {
  model::CallSite call;      // the line that both sides run
  std::string callee;        // as it is written there: "self.part.close"
  std::string runs;          // what leads to the collective: "Archivist.close"
  std::string instead;       // what it is on the other side; empty: not known
  model::CallSite other{};   // where that is defined
  bool of_odd = true;        // the odd ranks make the collective; not exchanged by turn()
  bool by_value = false;     // read from the memory of both sides
  bool by_stack = false;     // both sides are in it, each in another function
  program::Origin origin{};  // of the choice
  model::CallSite chosen{};  // the line that chose
  std::string chosen_by{};   // the condition or key there, or the assignment
};

/// The dispatch on the way to the call of one side, if the ranks diverged there; nothing if both
/// sides run the same function, or functions that make the same calls.
std::optional<Dispatch> dispatch_of(const graph::Examination& examination, const Parting& parting,
                                    const Fork& fork);

enum class ChosenBy { kRank, kAnything };

/// Sets the cause if a dispatch explains the divergence; false if none does. kRank: only one that
/// was seen on both sides and that a test of the rank chose.
bool read_dispatch(const graph::Examination& examination, Explanation& explanation,
                   ChosenBy chosen_by);

}  // namespace ddpdoctor::detectors
