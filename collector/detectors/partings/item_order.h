// SPDX-License-Identifier: Apache-2.0
// A loop over names that has the same items on every rank in another order: a dict that each rank
// filled as its data came, a list sorted by a value of the rank's own. Read from the iterators.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

struct ItemOrder {
  model::CallSite where;      // the loop's header
  std::string over;           // the iterable, as written
  std::string container;      // "dict", "list", "set": what the iterator goes over
  std::vector<Side> sides{};  // two, which are in different calls
  /// The ranks in the loop with the items in their order, in Python's spelling; the lowest first.
  std::vector<std::pair<model::RankSet, std::vector<std::string>>> orders;
};

/// The innermost such loop that two sides are in, if its item chooses what they call there: the
/// callee or an argument is looked up by it, or a condition on the way tests it. Ranks that go over
/// their own data in an order of their own do that on purpose.
std::optional<ItemOrder> item_order(const graph::Examination& examination);

/// The finding of such a loop; its kind is the caller's.
Finding finding_of_items(const graph::Examination& examination, const ItemOrder& order);

}  // namespace ddpdoctor::detectors
