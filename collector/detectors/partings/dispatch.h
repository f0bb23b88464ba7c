// SPDX-License-Identifier: Apache-2.0
// Finds a call that runs different functions on different ranks: a table gives each rank its own
// class, only some ranks have a callback, or `if rank == …` replaced a function. All ranks run the
// same line; whichever line chose the function decides which ranks call the collective.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/partings/cause.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {

struct Dispatch {
  model::CallSite call;      // the line that both sides run
  std::string callee;        // as written there: "self.part.close"
  std::string runs;          // the function that calls the collective: "Archivist.close"
  std::string instead;       // the function on the other side; empty: unknown
  bool of_lists = false;     // in a loop over callbacks: both are all functions of the loop
  model::CallSite other{};   // where `instead` is defined
  bool of_odd = true;        // the odd ranks call the collective; turn() does not swap it
  bool by_value = false;     // both functions were read from memory
  bool by_stack = false;     // both sides are inside the call, in different functions
  program::Origin origin{};  // of the choice
  model::CallSite chosen{};  // the line that chose
  std::string chosen_by{};   // the condition, key or assignment at that line
};

/// The dispatch between the fork and the call of one side, if the ranks diverged there; nothing if
/// both sides run the same function, or functions that make the same calls.
std::optional<Dispatch> dispatch_of(const graph::Examination& examination, const Parting& parting,
                                    const Fork& fork);

enum class ChosenBy { kRank, kAnything };

/// Sets the cause if a dispatch explains the divergence; otherwise returns false. kRank accepts
/// only a dispatch that was observed on both sides and that depends on the rank.
bool read_dispatch(const graph::Examination& examination, Explanation& explanation,
                   ChosenBy chosen_by);

}  // namespace ddpdoctor::detectors
