// SPDX-License-Identifier: Apache-2.0
// Which words of the prefixes of a log number its processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ddpdoctor::imports {

using HeadWords =
    std::vector<std::string_view>;          // of one prefix; all have the same number of words
using Numbers = std::vector<std::int64_t>;  // of one word, by prefix

/// The ranks of the heads, in their order; empty if the words do not number processes.
struct Numbering {
  Numbers ranks;
  bool assumed = false;  // counted, not read
  bool grid = false;     // of a host and a local rank
};

/// "1" of "1" and of "trainer-1".
std::optional<std::int64_t> number_in(std::string_view word);

Numbering numbering_of(const std::vector<HeadWords>& heads);

}  // namespace ddpdoctor::imports
