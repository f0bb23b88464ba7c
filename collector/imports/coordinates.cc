// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/coordinates.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/collective.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestDimension = 4;  // characters of a dimension
constexpr std::size_t kMostDimensions = 8;

/// The dimensions that determine a process, outermost first; others (EP, MOE, DCP) follow from
/// these.
constexpr std::array<std::string_view, 5> kOrder = {"DP", "PP", "PCP", "CP", "TP"};

int at(const Coordinates& place, std::string_view dimension) {
  const auto found = place.find(std::string(dimension));
  return found == place.end() ? 0 : found->second;
}

/// Every process has different numbers in these dimensions.
bool tell_apart(const std::set<Coordinates>& places, std::span<const std::string_view> dimensions) {
  std::set<std::vector<int>> seen;
  for (const Coordinates& place : places) {
    std::vector<int> key;
    for (const std::string_view dimension : dimensions) {
      key.push_back(at(place, dimension));
    }
    seen.insert(std::move(key));
  }
  return seen.size() == places.size();
}

/// One of the dimensions occurs.
bool name_any(const std::set<Coordinates>& places, std::span<const std::string_view> dimensions) {
  return std::any_of(places.begin(), places.end(), [dimensions](const Coordinates& place) {
    return std::any_of(dimensions.begin(), dimensions.end(), [&place](std::string_view dimension) {
      return place.contains(std::string(dimension));
    });
  });
}

/// The size of a dimension, as far as known.
int size_of(const std::set<Coordinates>& places, std::string_view dimension) {
  int size = 1;
  for (const Coordinates& place : places) {
    size = std::max(size, at(place, dimension) + 1);
  }
  return size;
}

/// Ranks are numbered through the inner dimensions first: a process after the first of an outer
/// dimension can be numbered only if all before it are known.
bool can_be_counted(const std::set<Coordinates>& places,
                    std::span<const std::string_view> dimensions) {
  std::size_t all = 1;
  std::size_t named = 0;
  bool behind = false;
  for (const std::string_view dimension : dimensions) {
    const int size = size_of(places, dimension);
    behind = behind || (named > 0 && all > 1 && name_any(places, {&dimension, 1}));
    all *= static_cast<std::size_t>(size);
    named += name_any(places, {&dimension, 1}) ? 1 : 0;
    if (all > static_cast<std::size_t>(model::kMaxWorldSize)) {
      return false;
    }
  }
  return !behind || all == places.size();
}

}  // namespace

Coordinates coordinates_of(std::string_view words) {
  Coordinates out;
  std::string text(base::trim(words));
  std::replace(text.begin(), text.end(), '_', ' ');
  bool of_a_part = false;  // "ATTN_CP7", "MOE_EP3": the place within another dimension
  for (const std::string_view word : base::split(text, ' ')) {
    if (word == "ATTN" || word == "MOE") {
      of_a_part = true;
      continue;
    }
    const std::size_t digit = std::min(word.find_first_of("0123456789"), word.size());
    const std::string_view name = word.substr(0, digit);
    const auto number = number_of(word.substr(digit), model::kMaxWorldSize - 1);
    const bool upper =
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isupper(c) != 0; });
    if (name.size() < 2 || name.size() > kLongestDimension || !upper || !number ||
        out.size() >= kMostDimensions) {
      return {};
    }
    if (!std::exchange(of_a_part, false)) {
      out.emplace(name, static_cast<int>(*number));
    }
  }
  return out;
}

std::string said(const Coordinates& place) {
  std::string out;
  for (const auto& [dimension, number] : place) {
    out += fmt::format("{}{}{}", out.empty() ? "" : " ", dimension, number);
  }
  return out;
}

Layout layout_of(const std::set<Coordinates>& places) {
  std::span<const std::string_view> order(kOrder);
  if (name_any(places, order.subspan(1)) && tell_apart(places, order.subspan(1))) {
    order = order.subspan(1);
  } else if (!tell_apart(places, order)) {
    return {};
  }
  Layout out{.ranks = {}, .least = 1, .gaps = !can_be_counted(places, order)};
  for (const std::string_view dimension : order) {
    out.least *= static_cast<std::size_t>(size_of(places, dimension));
    if (out.least > static_cast<std::size_t>(model::kMaxWorldSize)) {
      return {};
    }
  }
  for (const Coordinates& place : places) {
    std::int64_t rank = 0;
    for (const std::string_view dimension : order) {
      rank = rank * size_of(places, dimension) + at(place, dimension);
    }
    out.ranks.emplace(place, static_cast<model::Rank>(rank));
  }
  return out;
}

std::map<Coordinates, model::Rank> ranks_of(const std::set<Coordinates>& places) {
  Layout layout = layout_of(places);
  return layout.gaps ? std::map<Coordinates, model::Rank>() : std::move(layout.ranks);
}

}  // namespace ddpdoctor::imports
