// SPDX-License-Identifier: Apache-2.0
// The numbers that torch gives to groups: each rank counts its own new_group() calls, and the
// number becomes the group's name. Ranks that create one group under two numbers have counted
// differently, and so have ranks that create two groups under one number.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Ranks in new_group() that give their group different numbers.
struct GroupNumbers {
  model::RankSet behind;   // ranks that have made fewer groups
  model::RankSet ahead;    // ranks that have made the most
  bool one_group = false;  // the members are equal, and the call is at the same line of the program
  /// The existing group, on the ranks ahead, with the number that the ranks behind now give to
  /// another group.
  const model::ProcessGroup* unknown_behind = nullptr;
};

/// Nothing if the numbers are equal or unknown: with use_local_synchronization, a group's name is a
/// hash.
std::optional<GroupNumbers> group_numbers(const graph::Examination& examination);

/// A group that a rank is creating.
struct GroupMade {
  int number = 0;
  std::string_view members;  // "[0, 1, 2, 3]"
  const graph::Standing* by = nullptr;
};

/// Two groups with one number and different members; empty if there are none.
std::vector<GroupMade> groups_of_one_number(const graph::Examination& examination);

/// Two groups with one name and different members: each side used its next free number.
struct SharedName {
  const model::ProcessGroup* one = nullptr;
  const model::ProcessGroup* other = nullptr;  // its id: "3:1,3", the name and the members
};

/// A name that two groups share, if ranks wait in one of them.
std::optional<SharedName> shared_name(const graph::Examination& examination);

/// The group of all ranks, which new_group() never creates: the ranks were given different world
/// sizes.
bool is_default_group(const model::JobModel& job, const SharedName& shared);

/// All ranks in new_group() for one of them, if no rank is a member of two: each calls it for its
/// own group only. Otherwise empty, because an extra or missing call looks the same.
model::RankSet makers_of_their_own(const graph::Examination& examination,
                                   const std::vector<GroupMade>& groups);

}  // namespace ddpdoctor::detectors
