// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/callback_lists.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace ddpdoctor::detectors {
namespace {

/// Nothing for a single function and for a list that is shown in part.
std::optional<std::set<std::string_view>> functions_in(std::string_view list) {
  if (!list.starts_with('[') || !list.ends_with(']') || list.find("…") != list.npos) {
    return std::nullopt;
  }
  constexpr std::string_view kBetween = ", ";
  std::set<std::string_view> found;
  list = list.substr(1, list.size() - 2);
  for (std::size_t end = list.find(kBetween); end != list.npos; end = list.find(kBetween)) {
    found.insert(list.substr(0, end));
    list.remove_prefix(end + kBetween.size());
  }
  found.insert(list);
  return found;
}

}  // namespace

bool differ_only_in_number(const model::ReachedBy& reached) {
  const auto first =
      reached.functions.empty() ? std::nullopt : functions_in(reached.functions.front().text);
  return first &&
         std::all_of(reached.functions.begin(), reached.functions.end(),
                     [&first](const auto& one) { return functions_in(one.text) == first; });
}

}  // namespace ddpdoctor::detectors
