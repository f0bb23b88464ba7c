// SPDX-License-Identifier: Apache-2.0
// A parsed file: all nodes in one array, in source order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/program/syntax/node.h"
#include "collector/program/syntax/whole_text.h"

namespace ddpdoctor::program {

struct FlatNode {
  NodeKind kind = NodeKind::kOther;
  Field role = Field::kNone;
  std::uint16_t symbol = 0;  // the grammar's number of the kind
  std::uint32_t parent = 0;  // the root's parent is the root
  std::uint32_t last = 0;    // one past the last node inside
  std::uint32_t begin = 0;   // bytes
  std::uint32_t end = 0;
  std::uint32_t row = 0;
  std::uint32_t last_row = 0;
};

/// Omits nodes deeper than kMaxDepth, so that recursive walks are safe.
class Tree {
 public:
  static constexpr int kMaxDepth = 400;

  /// Never fails: text that is not Python gives error nodes; text that is too large or too complex
  /// gives an empty module.
  explicit Tree(WholeText text);

  [[nodiscard]] const std::vector<FlatNode>& nodes() const {
    return nodes_;
  }
  [[nodiscard]] const WholeText& text() const {
    return text_;
  }
  /// The text contains something that is not Python.
  [[nodiscard]] bool has_errors() const;
  [[nodiscard]] Node root() const {
    return {this, 0};
  }

 private:
  void parse();

  WholeText text_;
  std::vector<FlatNode> nodes_;
};

}  // namespace ddpdoctor::program
