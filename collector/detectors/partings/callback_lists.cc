// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/callback_lists.h"

#include <algorithm>
#include <set>

namespace ddpdoctor::detectors {

bool differ_only_in_number(const model::ReachedBy& reached) {
  const auto functions = [](const model::ReachedBy::Function& one) {
    return std::set<model::CallSite>(one.each.begin(), one.each.end());
  };
  const auto first = reached.functions.empty() ? std::set<model::CallSite>()
                                               : functions(reached.functions.front());
  return !first.empty() && std::all_of(reached.functions.begin(), reached.functions.end(),
                                       [&](const auto& one) { return functions(one) == first; });
}

}  // namespace ddpdoctor::detectors
