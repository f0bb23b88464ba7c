// SPDX-License-Identifier: Apache-2.0
// The slice for order: follows names, parameters, returns and containers back to a set, a listing
// or a sort. Its depth is bounded. A sort on the way, or an agreement of the ranks, gives a fixed
// order.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "collector/program/origin/order.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {

struct OrderFound {
  OwnOrder order = OwnOrder::kFixed;
  std::vector<OriginStep> chain{};
};

class OrderSlice {
 public:
  OrderSlice(const Files& files, const CallString* callers) : files_(files), callers_(callers) {}

  OrderFound of(Node node, const File& file, std::size_t scope, int depth = 0);

 private:
  OrderFound of_comprehension(Node node, const File& file, std::size_t scope, int depth);
  OrderFound of_binary(Node node, const File& file, std::size_t scope, int depth);
  OrderFound of_arguments(Node call, const File& file, std::size_t scope, int depth);
  OrderFound of_call(Node call, const File& file, std::size_t scope, int depth);
  [[nodiscard]] Definition own_method(Node callee, const File& file, std::size_t scope) const;
  OrderFound of_method(Node call, const File& file, std::size_t scope, int depth, bool& known);
  bool lists_a_path(Node object, std::string_view method, const File& file, std::size_t scope);
  OrderFound of_returns(const Definition& function, int depth);
  OrderFound of_name(Node node, const File& file, std::size_t scope, int depth);
  OrderFound of_variable(const Definition& is, std::size_t use, int depth);
  OrderFound of_bindings(const std::vector<BoundIn>& bindings, const File& file, int depth);
  OrderFound of_attribute(Node node, const File& file, int depth);
  OrderFound of_loop_around(std::size_t statement, const File& file, std::size_t scope, int depth);
  OrderFound of_parameter(const File& file, std::size_t scope, std::size_t index, int depth);
  /// The order in which a loop fills a container.
  OrderFound of_fill(const Binding& binding, const File& file, std::size_t scope, int depth);
  const CallIn* call_on_stack(const File& from, std::string_view called) const;
  bool is_agreed(const Definition& is);

  const Files& files_;
  const CallString* callers_;
  std::set<std::tuple<const File*, std::size_t, std::string>> open_;
};

/// Puts a line at the front of the chain; does nothing if no order was found.
void add_order_step(OrderFound& found, Node node, const File& file);

}  // namespace ddpdoctor::program
