// SPDX-License-Identifier: Apache-2.0
// What a person wrote above a pasted stack: "rank 3:", "--- TP2 (DP1), TP3 same ---", "=== ranks
// 1-7 ===", "7 of 8 schedulers (TP1 .. TP7), e.g.".
#pragma once

#include <string_view>
#include <vector>

#include "collector/imports/coordinates.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

/// The processes that have the stack below. At most one of the two is not empty.
struct Heading {
  std::vector<model::Rank> ranks;
  std::vector<Coordinates> places;

  [[nodiscard]] bool empty() const {
    return ranks.empty() && places.empty();
  }
};

/// Empty if the line names no process, or is too long for a heading.
Heading heading_of(std::string_view line);

/// Gives the dumps from `first` on to the first process of the heading. If it is one dump, each
/// other process gets a copy.
void give_to(const Heading& heading, std::size_t first, std::vector<StackDump>& dumps);

/// The beginning of the title of a process that only a heading names: "dump::of_TP2_DP1".
inline constexpr std::string_view kHeadingTitle = "dump::of";

}  // namespace ddpdoctor::imports
