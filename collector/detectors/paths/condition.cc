// SPDX-License-Identifier: Apache-2.0
// The ranks for which a comparison with numbers is true.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {
namespace {

struct Comparison {
  std::string_view left;
  std::string_view sign;
  std::string_view right;
};

std::optional<Comparison> only_comparison(std::string_view text) {
  for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
    const std::size_t at = text.find(sign);
    if (at != std::string_view::npos) {
      return Comparison{.left = base::trim(text.substr(0, at)),
                        .sign = sign,
                        .right = base::trim(text.substr(at + sign.size()))};
    }
  }
  return std::nullopt;
}

bool compare(long long left, std::string_view sign, long long right) {
  if (sign == "==") {
    return left == right;
  }
  if (sign == "!=") {
    return left != right;
  }
  if (sign == "<=") {
    return left <= right;
  }
  if (sign == ">=") {
    return left >= right;
  }
  return sign == "<" ? left < right : left > right;
}

/// A single value: a name, an attribute, a call, an item; not "not x", not a sum.
bool is_one_value(std::string_view text) {
  return !text.empty() && text.find_first_of(" +-*/%<>=") == std::string_view::npos;
}

/// "(0, 1)", "[0]", "{2, 3}", "range(2)", "range(2, 4)" contain this number; nullopt for anything
/// but numbers.
std::optional<bool> is_among(std::string_view list, long long number) {
  constexpr std::string_view kRange = "range(";
  const bool range = list.starts_with(kRange);
  constexpr std::string_view kClosing = ")]}";
  if (list.size() < 2 || kClosing.find(list.back()) == kClosing.npos ||
      (!range && std::string_view("([{").find(list.front()) == list.npos)) {
    return std::nullopt;
  }
  list = list.substr(range ? kRange.size() : 1);
  list.remove_suffix(1);
  std::vector<long long> numbers;
  for (const std::string_view word : base::split(list, ',')) {
    const std::string_view item = base::trim(word);
    long long value = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (item.empty() && !numbers.empty()) {
      continue;  // "(0,)"
    }
    if (error != std::errc() || end != item.data() + item.size()) {
      return std::nullopt;
    }
    numbers.push_back(value);
  }
  if (!range) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  }
  if (numbers.empty() || numbers.size() > 2) {
    return std::nullopt;
  }
  const long long first = numbers.size() == 1 ? 0 : numbers.front();
  return number >= first && number < numbers.back();
}

/// "rank in (0, 1)", "rank not in [0]".
std::optional<bool> membership(std::string_view condition, model::Rank rank) {
  const std::size_t negated = condition.find(" not in ");
  const std::size_t at = negated != condition.npos ? negated : condition.find(" in ");
  if (at == condition.npos || !is_one_value(base::trim(condition.substr(0, at)))) {
    return std::nullopt;
  }
  const std::size_t words = negated != condition.npos ? 8 : 4;
  const auto among = is_among(base::trim(condition.substr(at + words)), rank);
  return among ? std::optional(*among != (negated != condition.npos)) : std::nullopt;
}

}  // namespace

std::optional<bool> holds_for(std::string_view condition, model::Rank rank) {
  condition = base::trim(condition);
  if (condition.find(" and ") != std::string_view::npos ||
      condition.find(" or ") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto comparison = only_comparison(condition);
  if (!comparison) {
    return membership(condition, rank);
  }
  if (!is_one_value(comparison->left)) {
    return std::nullopt;
  }
  long long value = 0;
  const std::string_view right = comparison->right;
  const auto [end, error] = std::from_chars(right.data(), right.data() + right.size(), value);
  if (error != std::errc() || end != right.data() + right.size()) {
    return std::nullopt;
  }
  return compare(rank, comparison->sign, value);
}

}  // namespace ddpdoctor::detectors
