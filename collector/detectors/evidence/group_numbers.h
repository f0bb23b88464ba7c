// SPDX-License-Identifier: Apache-2.0
// The numbers that torch gives to groups: each rank counts those it has been told of, and the
// number is the group's name. Ranks that make one group under two numbers have counted differently,
// and so have ranks that make two groups under one.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks in new_group that give its group different numbers.
struct GroupNumbers {
  model::RankSet behind;   // have been told of fewer groups
  model::RankSet ahead;    // of the most
  bool one_group = false;  // the members they give for it are the same, at one line of the program
  /// The group that has on the ranks ahead the number which those behind give to another now.
  const model::ProcessGroup* unknown_behind = nullptr;
};

/// Nothing where the numbers are alike, or not known: a group with use_local_synchronization has a
/// hash for its name.
std::optional<GroupNumbers> group_numbers(const graph::Examination& examination);

/// A group in the making, as a rank gives it.
struct GroupMade {
  int number = 0;
  std::string_view members;  // "[0, 1, 2, 3]"
  const graph::Standing* by = nullptr;
};

/// Two groups of one number and other members; empty where there are none.
std::vector<GroupMade> groups_of_one_number(const graph::Examination& examination);

/// Two groups of one name with other members: each side took the next free number for its own.
struct SharedName {
  const model::ProcessGroup* one = nullptr;
  const model::ProcessGroup* other = nullptr;  // its id: "3:1,3", the name and the members
};

/// A name that two groups share, with ranks that wait in one of them.
std::optional<SharedName> shared_name(const graph::Examination& examination);

/// The group of all ranks, which nobody makes by new_group(): ranks were told different sizes.
bool is_default_group(const model::JobModel& job, const SharedName& shared);

/// All that are in new_group for one of them, where no rank is a member of two: each calls for its
/// own group only. Else nobody: one call too few or too many looks like that.
model::RankSet makers_of_their_own(const graph::Examination& examination,
                                   const std::vector<GroupMade>& groups);

}  // namespace ddpdoctor::detectors
