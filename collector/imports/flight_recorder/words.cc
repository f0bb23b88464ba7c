// SPDX-License-Identifier: Apache-2.0
// Fingerprints, and the content that dumps share.
#include <charconv>
#include <cstring>

#include "base/text.h"
#include "collector/imports/flight_recorder/parts.h"

namespace ddpdoctor::imports {

Fingerprint fingerprint(std::uint64_t number, Fingerprint seed) {
  // splitmix64's finalizer: every input bit affects every bit of the result.
  std::uint64_t x = number + seed * 0x9e3779b97f4a7c15U + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  x ^= x >> 31U;
  return x == 0 ? 1 : x;
}

Fingerprint fingerprint(std::string_view text, Fingerprint seed) {
  Fingerprint print = fingerprint(text.size(), seed);
  while (text.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof(word));
    print = fingerprint(word, print);
    text.remove_prefix(sizeof(word));
  }
  if (!text.empty()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), text.size());
    print = fingerprint(word, print);
  }
  return print;
}

void Vocabulary::join(Vocabulary other) {
  calls.merge(other.calls);
  members.merge(other.members);
}

std::optional<model::Rank> rank_in_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  constexpr std::string_view kDigits = "0123456789";
  const auto number_at = [&](std::size_t at) -> std::optional<model::Rank> {
    model::Rank rank = 0;
    const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
    return error == std::errc() && rank >= 0 && rank < model::kMaxWorldSize ? std::optional(rank)
                                                                            : std::nullopt;
  };
  for (std::size_t at = name.rfind("rank"); at != std::string_view::npos && at != 0;
       at = name.rfind("rank", at - 1)) {
    const std::size_t digit = name.find_first_not_of("_-.=", at + 4);
    if (digit != std::string_view::npos && kDigits.find(name[digit]) != std::string_view::npos) {
      return number_at(digit);
    }
  }
  if (name.starts_with("rank") && name.find_first_of(kDigits) != std::string_view::npos) {
    return number_at(name.find_first_of(kDigits));
  }
  const std::size_t last = name.find_last_of(kDigits);
  if (last == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t before = name.find_last_not_of(kDigits, last);
  return number_at(before == std::string_view::npos ? 0 : before + 1);
}

}  // namespace ddpdoctor::imports
