// SPDX-License-Identifier: Apache-2.0
// One call line that ran different functions: a table gives each rank its own class, only some
// ranks have a callback, or a test of the rank replaced a function. The line is the same on all
// ranks; the choice of its receiver decides which ranks make the collective.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/partings/cause.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {

struct Dispatch {
  model::CallSite call;      // the line that both sides run
  std::string callee;        // as it is written there: "self.part.close"
  std::string runs;          // the function that makes the collective: "Archivist.close"
  std::string instead;       // the function on the other side; empty: unknown
  model::CallSite other{};   // where `instead` is defined
  bool of_odd = true;        // the odd ranks make the collective; not exchanged by turn()
  bool by_value = false;     // read from the memory of both sides
  bool by_stack = false;     // both sides are in the call, in different functions
  program::Origin origin{};  // of the choice
  model::CallSite chosen{};  // the line that chose
  std::string chosen_by{};   // the condition, key or assignment at that line
};

/// The dispatch between the fork and the call of one side, if the ranks diverged there; nothing if
/// both sides run the same function, or functions that make the same calls.
std::optional<Dispatch> dispatch_of(const graph::Examination& examination, const Parting& parting,
                                    const Fork& fork);

enum class ChosenBy { kRank, kAnything };

/// Sets the cause if a dispatch explains the divergence; returns false if none does. kRank: only a
/// dispatch that was observed on both sides and that a test of the rank chose.
bool read_dispatch(const graph::Examination& examination, Explanation& explanation,
                   ChosenBy chosen_by);

}  // namespace ddpdoctor::detectors
