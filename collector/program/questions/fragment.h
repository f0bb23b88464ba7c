// SPDX-License-Identifier: Apache-2.0
// A single piece of Python: an expression, a statement, a header without its suite. The constructor
// adds what a module needs around it.
#pragma once

#include <string_view>

#include "collector/program/syntax/tree.h"

namespace ddpdoctor::program {

class Fragment {
 public:
  /// `text` must outlive the views into it.
  explicit Fragment(std::string_view text);

  [[nodiscard]] Node root() const {
    return tree_.root();
  }
  /// The expression, if the text is exactly one expression.
  [[nodiscard]] Node expression() const;
  /// Offsets of a node's begin and end in the text.
  [[nodiscard]] std::size_t begin(Node node) const;
  [[nodiscard]] std::size_t end(Node node) const;
  [[nodiscard]] std::string_view view(std::size_t begin, std::size_t end) const {
    return begin < end ? text_.substr(begin, end - begin) : std::string_view();
  }
  [[nodiscard]] std::string_view view(Node node) const {
    return view(begin(node), end(node));
  }

 private:
  [[nodiscard]] std::size_t offset(std::uint32_t byte) const;

  std::string_view text_;
  std::size_t skipped_ = 0;  // white space before the text
  std::size_t added_ = 0;    // bytes added before it in the tree
  Tree tree_;
};

}  // namespace ddpdoctor::program
