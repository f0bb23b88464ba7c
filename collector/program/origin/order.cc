// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/order.h"

#include <utility>

#include "collector/program/origin/items.h"
#include "collector/program/origin/order_slice.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kLongestOrder = 100;  // characters of the iterable's text

LoopInOwnOrder said(OrderFound found, Node over, int line) {
  return {.order = found.order,
          .line = line,
          .over = over.one_line().substr(0, kLongestOrder),
          .chain = std::move(found.chain)};
}

}  // namespace

std::string_view name_of(OwnOrder order) {
  switch (order) {
    case OwnOrder::kFixed:
      return "something fixed";
    case OwnOrder::kSet:
      return "a set";
    case OwnOrder::kDirectory:
      return "a directory listing";
    case OwnOrder::kHash:
      return "a sort by hash()";
    case OwnOrder::kRandom:
      return "random numbers";
  }
  return {};
}

std::optional<LoopInOwnOrder> loop_in_own_order(const Asked& asked, const Sources& sources) {
  const SourceIndex& index = index_of(*asked.text);
  const std::size_t at = index.empty() ? kNone : index.statement_at(asked.line);
  if (at == kNone) {
    return std::nullopt;
  }
  const Files files(*asked.text, sources);
  const File& file = files.file_of(*asked.text);
  OrderSlice orders(files, asked.callers);
  const std::size_t scope = index.statements()[at].scope;
  // Comprehensions of the statement itself.
  std::vector<Node> open;
  if (!is_header(index.statements()[at].node.kind())) {
    open.push_back(index.statements()[at].node);
  }
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    if (node.is(NodeKind::kForIn)) {
      OrderFound found = orders.of(node.field(Field::kRight), file, scope);
      if (found.order != OwnOrder::kFixed) {
        return said(std::move(found), node.field(Field::kRight), node.line());
      }
    }
    for (const Node child : node.children()) {
      open.push_back(child);
    }
  }
  for (std::size_t loop = at; loop != kNone && index.statements()[loop].scope == scope;
       loop = index.statements()[loop].parent) {
    const Node node = index.statements()[loop].node;
    if (node.is(NodeKind::kWhile)) {
      break;  // an enclosing loop further out is another step
    }
    if (node.is(NodeKind::kFor)) {
      OrderFound found = orders.of(node.field(Field::kRight), file, scope);
      if (found.order != OwnOrder::kFixed) {
        return said(std::move(found), node.field(Field::kRight), node.line());
      }
      if (items_of(*asked.text, node.line(), sources) == Items::kBatches) {
        break;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::program
