// SPDX-License-Identifier: Apache-2.0
// torch's objects as text.
#include "collector/stacks/torch/values.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collector/stacks/torch/cpp_objects.h"
#include "collector/stacks/torch/groups.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::size_t kInlineDimensions = 5;  // C10_SIZES_AND_STRIDES_MAX_INLINE_SIZE
constexpr std::size_t kMaxDimensions = 64;

/// c10d::ReduceOp::RedOpType (Types.hpp), the same order since 1.13.
constexpr auto kReduceOps = std::to_array<std::string_view>(
    {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"});

/// The sizes of a TensorImpl whose product is its number of elements.
std::optional<std::vector<std::int64_t>> shape(RemoteMemory& memory, RemoteAddress tensor,
                                               const TorchLayout& layout) {
  const auto dimensions = memory.get<std::uint64_t>(tensor + layout.shape);
  const auto count = memory.get<std::int64_t>(tensor + layout.count);
  if (!dimensions || !count || *dimensions > kMaxDimensions || *count < 0) {
    return std::nullopt;
  }
  RemoteAddress place = tensor + layout.shape + sizeof(std::uint64_t);
  if (*dimensions > kInlineDimensions) {
    place = memory.get<RemoteAddress>(place).value_or(0);
  }
  std::vector<std::int64_t> sizes(*dimensions);
  if (!sizes.empty() && !memory.read(place, std::as_writable_bytes(std::span(sizes)))) {
    return std::nullopt;
  }
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0 || (size > 0 && product > std::numeric_limits<std::int64_t>::max() / size)) {
      return std::nullopt;
    }
    product *= size;
  }
  return product == *count ? std::optional(std::move(sizes)) : std::nullopt;
}

std::optional<std::string> tensor_as(PythonObjects& objects, const TorchLayout& layout,
                                     RemoteAddress object, bool known) {
  RemoteMemory& memory = objects.memory();
  const auto tensor = memory.get<RemoteAddress>(object + objects.header_size() + layout.variable);
  if (!tensor || *tensor == 0) {
    return std::nullopt;
  }
  if (!known && !cpp_type_name(memory, *tensor).value_or("").ends_with("TensorImplE")) {
    return std::nullopt;
  }
  const auto sizes = shape(memory, *tensor, layout);
  const auto type = memory.get<std::uint16_t>(*tensor + layout.dtype);
  const auto name = type ? dtype_name(*type) : std::nullopt;
  if (!sizes || !name) {
    return std::nullopt;
  }
  const std::string dimensions =
      sizes->empty() ? "scalar" : fmt::format("{}", fmt::join(*sizes, "x"));
  return fmt::format("Tensor({}, {})", dimensions, *name);
}

/// Uses this release's tensor layout, else the only other layout that gives a plausible result.
std::optional<std::string> tensor(PythonObjects& objects, const TorchLayouts& layouts,
                                  RemoteAddress object) {
  if (layouts.exact != nullptr) {
    return tensor_as(objects, *layouts.exact, object, true);
  }
  std::set<std::string> texts;
  for (const TorchLayout* layout : layouts.others) {
    if (const auto text = tensor_as(objects, *layout, object, false)) {
      texts.insert(*text);
    }
  }
  return texts.size() == 1 ? std::optional(*texts.begin()) : std::nullopt;
}

std::optional<std::string> reduce_op(PythonObjects& objects, RemoteAddress object,
                                     std::size_t offset) {
  const auto value = bound_value(objects, object);
  const auto number = value ? objects.memory().get<std::uint8_t>(*value + offset) : std::nullopt;
  if (!number || *number >= kReduceOps.size()) {
    return std::nullopt;
  }
  return fmt::format("ReduceOp.{}", kReduceOps[*number]);
}

/// For an unknown release, only if the reference counts are those of an object held by Python,
/// which distinguishes the two known layouts (counts of 4 and of 8 bytes).
std::optional<std::size_t> place_of_operation(PythonObjects& objects, const TorchLayouts& layouts,
                                              RemoteAddress object) {
  if (layouts.exact != nullptr) {
    return layouts.exact->reduce_op;
  }
  RemoteMemory& memory = objects.memory();
  const auto value = bound_value(objects, object);
  if (!value || cpp_type_name(memory, *value) != "N4c10d8ReduceOpE") {
    return std::nullopt;
  }
  constexpr std::size_t kCounts = 8;
  constexpr std::uint32_t kMostCounted = 1U << 20U;
  const auto count = memory.get<std::uint32_t>(*value + kCounts);
  const auto weak = memory.get<std::uint32_t>(*value + kCounts + sizeof(std::uint32_t));
  if (!count || !weak || *count == 0 || *count > kMostCounted || *weak > kMostCounted) {
    return std::nullopt;
  }
  return kCounts + (*weak != 0 ? 1 : 2) * sizeof(std::uint64_t);
}

}  // namespace

std::optional<std::string> torch_repr(PythonObjects& objects, const TorchLayouts& layouts,
                                      const std::map<RemoteAddress, std::string>& group_names,
                                      RemoteAddress object, std::string_view type_name) {
  const std::string_view name = type_name.substr(type_name.rfind('.') + 1);
  if (const auto group = group_names.find(object); group != group_names.end()) {
    return fmt::format("<ProcessGroup {}>", group->second);
  }
  if (name == "Tensor" || name == "Parameter" || name == "Buffer") {
    const auto text = tensor(objects, layouts, object);
    return text ? text : fmt::format("<{}>", name);
  }
  if (name == "RedOpType") {  // the plain enumerator needs no layout
    return reduce_op(objects, object, 0).value_or("<ReduceOp>");
  }
  if (name == "ReduceOp") {
    const auto place = place_of_operation(objects, layouts, object);
    const auto text = place ? reduce_op(objects, object, *place) : std::nullopt;
    return text.value_or("<ReduceOp>");
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::stacks
