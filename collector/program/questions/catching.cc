// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/catching.h"

#include <algorithm>
#include <array>

#include "collector/program/questions/names.h"

namespace ddpdoctor::program {

std::vector<std::string_view> exceptions_in(Node expression) {
  std::vector<std::string_view> out;
  for (const NameChain& chain : name_chains(expression)) {
    out.push_back(chain.words.back());
  }
  return out;
}

std::vector<std::string_view> caught_by(const Code& code, std::size_t clause) {
  Node caught = code[clause].node.first_child();
  caught = caught.is(NodeKind::kAsPattern) ? caught.first_child() : caught;
  return caught.is(NodeKind::kBlock) ? std::vector<std::string_view>() : exceptions_in(caught);
}

bool is_end_of_data(std::string_view exception) {
  constexpr std::array<std::string_view, 6> kEnds = {
      "StopIteration", "StopAsyncIteration", "EOFError", "IndexError", "Empty", "QueueEmpty"};
  return std::find(kEnds.begin(), kEnds.end(), exception) != kEnds.end();
}

}  // namespace ddpdoctor::program
