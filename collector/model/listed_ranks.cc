// SPDX-License-Identifier: Apache-2.0
#include "collector/model/listed_ranks.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace ddpdoctor::model {
namespace {

std::optional<Rank> taken(std::string_view& text) {
  Rank rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || rank < 0 || rank >= kMaxWorldSize) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return rank;
}

/// "3", "3-5" or "0-8 step 2"; false for another text, or if the list becomes too long.
bool append(std::string_view item, std::vector<Rank>& out) {
  constexpr std::string_view kStep = " step ";
  const auto first = taken(item);
  auto last = first;
  std::optional<Rank> step = 1;
  if (first && item.starts_with('-')) {
    item.remove_prefix(1);
    last = taken(item);
  }
  if (item.starts_with(kStep)) {
    item.remove_prefix(kStep.size());
    step = taken(item);
  }
  if (!first || !last || *last < *first || step.value_or(0) < 1 || !item.empty() ||
      out.size() + static_cast<std::size_t>(*last - *first) >= kMaxWorldSize) {
    return false;
  }
  for (Rank rank = *first; rank <= *last; rank += *step) {
    out.push_back(rank);
  }
  return true;
}

/// Without the brackets around it.
std::string_view inside(std::string_view text) {
  text = base::trim(text);
  const bool round = text.starts_with('(') && text.ends_with(')');
  const bool square = text.starts_with('[') && text.ends_with(']');
  const bool curly = text.starts_with('{') && text.ends_with('}');
  return round || square || curly ? base::trim(text.substr(1, text.size() - 2)) : text;
}

}  // namespace

ListedRanks listed_ranks(std::string_view text) {
  constexpr std::string_view kAnd = " and ";
  ListedRanks out;
  text = inside(text);
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::size_t word = text.substr(0, comma).find(kAnd);
    const std::string_view item = base::trim(text.substr(0, std::min(word, comma)));
    out.whole = append(item, out.ranks) && out.whole;
    text.remove_prefix(word < comma ? word + kAnd.size() : std::min(comma + 1, text.size()));
  }
  return out;
}

}  // namespace ddpdoctor::model
