// SPDX-License-Identifier: Apache-2.0
// A word numbers the processes if it has each number from 0 once, or if it does so on each host.
#include "collector/imports/logs/prefix_numbers.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::int64_t kMostOfWord = 1'000'000;

/// The numbers of the words at this place, if each head has one.
std::optional<Numbers> column(const std::vector<HeadWords>& heads, std::size_t place) {
  Numbers out;
  for (const HeadWords& words : heads) {
    const auto number = number_in(words[place]);
    if (!number) {
      return std::nullopt;
    }
    out.push_back(*number);
  }
  return out;
}

/// Each of first … first + n - 1 once.
bool is_run(const Numbers& numbers, std::int64_t first) {
  Numbers sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != first + static_cast<std::int64_t>(i)) {
      return false;
    }
  }
  return true;
}

/// "[trainer0|8]" … "[trainer7|15]" of the second of two nodes: the local rank runs from 0, and the
/// rank with it.
Numbering read_numbers(const std::vector<Numbers>& columns) {
  bool from_zero = false;
  for (auto one = columns.rbegin(); one != columns.rend(); ++one) {
    if (is_run(*one, 0)) {
      from_zero = true;
      break;
    }
  }
  for (auto one = columns.rbegin(); from_zero && one != columns.rend(); ++one) {
    if (is_run(*one, *std::min_element(one->begin(), one->end()))) {
      return {.ranks = *one};
    }
  }
  return {};
}

/// "node0/0" … "node1/3", "alpha|0" … "beta|3": each host has the local ranks 0 … m - 1.
Numbering count_grid(const std::vector<HeadWords>& heads, const std::vector<std::size_t>& varying) {
  if (varying.size() != 2) {
    return {};
  }
  std::map<std::pair<std::int64_t, std::string_view>, std::set<std::int64_t>> hosts;
  for (const HeadWords& words : heads) {
    const std::string_view host = words[varying[0]];
    const auto local = number_in(words[varying[1]]);
    if (!local || !hosts[{number_in(host).value_or(0), host}].insert(*local).second) {
      return {};
    }
  }
  const std::set<std::int64_t>& first = hosts.begin()->second;
  const bool same = std::all_of(hosts.begin(), hosts.end(),
                                [&first](const auto& host) { return host.second == first; });
  if (!same || !is_run(Numbers(first.begin(), first.end()), 0)) {
    return {};
  }
  Numbering out{.ranks = {}, .assumed = true, .grid = true};
  for (const HeadWords& words : heads) {
    const std::string_view host = words[varying[0]];
    const auto at = hosts.find({number_in(host).value_or(0), host});
    out.ranks.push_back(std::distance(hosts.begin(), at) * static_cast<std::int64_t>(first.size()) +
                        number_in(words[varying[1]]).value_or(0));
  }
  return out;
}

}  // namespace

std::optional<std::int64_t> number_in(std::string_view word) {
  std::size_t begin = word.size();
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(word[begin - 1])) != 0) {
    --begin;
  }
  return number_of(word.substr(begin), kMostOfWord);
}

Numbering numbering_of(const std::vector<HeadWords>& heads) {
  std::vector<Numbers> columns;
  std::vector<std::size_t> varying;
  for (std::size_t place = 0; place < heads.front().size(); ++place) {
    const bool varies = std::any_of(heads.begin(), heads.end(), [&](const HeadWords& words) {
      return words[place] != heads.front()[place];
    });
    if (varies) {
      varying.push_back(place);
    }
    if (auto numbers = varies ? column(heads, place) : std::nullopt) {
      columns.push_back(std::move(*numbers));
    }
  }
  Numbering out = read_numbers(columns);
  out = out.ranks.empty() ? count_grid(heads, varying) : std::move(out);
  // "trainer-1", "trainer-2": processes that are counted from 1.
  if (out.ranks.empty() && varying.size() == 1 && columns.size() == 1 && is_run(columns[0], 1)) {
    out = {.ranks = columns[0], .assumed = true, .grid = false};
    std::for_each(out.ranks.begin(), out.ranks.end(), [](std::int64_t& rank) { --rank; });
  }
  return out;
}

}  // namespace ddpdoctor::imports
