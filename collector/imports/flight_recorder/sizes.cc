// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/flight_recorder/sizes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace ddpdoctor::imports {
namespace {

using model::CollectiveCall;
using Shape = std::vector<std::int64_t>;
using std::string_view;

constexpr std::array<std::pair<string_view, string_view>, 15> kDtypes = {{
    {"bfloat16", "BFloat16"},
    {"bool", "Bool"},
    {"complex128", "ComplexDouble"},
    {"complex32", "ComplexHalf"},
    {"complex64", "ComplexFloat"},
    {"float16", "Half"},
    {"float32", "Float"},
    {"float64", "Double"},
    {"int16", "Short"},
    {"int32", "Int"},
    {"int64", "Long"},
    {"int8", "Char"},
    {"float8_e4m3fn", "Float8_e4m3fn"},
    {"float8_e5m2", "Float8_e5m2"},
    {"uint8", "Byte"},
}};

/// The tensors of all ranks as one tensor.
Shape times(const Shape& shape, std::size_t ranks) {
  Shape out = shape;
  out.insert(out.begin(), static_cast<std::int64_t>(ranks));
  return out;
}

/// Each rank's part; nothing if it cannot be split evenly.
Shape part(const Shape& shape, std::size_t ranks) {
  const auto parts = static_cast<std::int64_t>(std::max<std::size_t>(ranks, 1));
  Shape out = shape;
  const auto even = std::find_if(out.begin(), out.end(), [parts](std::int64_t extent) {
    return extent > 0 && extent % parts == 0;
  });
  if (even == out.end()) {
    return {};
  }
  *even /= parts;
  return out;
}

Shape sum_of(const std::optional<std::vector<std::int64_t>>& splits) {
  std::int64_t sum = 0;
  for (const std::int64_t split : splits.value_or(std::vector<std::int64_t>())) {
    if (split < 0 || __builtin_add_overflow(sum, split, &sum)) {
      return {0};
    }
  }
  return {sum};
}

}  // namespace

SizesOfCall sizes_of(const CollectiveCall& call, std::size_t group_size) {
  const string_view operation = call.operation;
  if (operation.ends_with("barrier")) {
    return {};
  }
  if (operation.starts_with("all_to_all")) {
    // Sent and expected elements must be equal in total over all ranks, not on each rank.
    if (call.splits && call.output_splits && !call.splits->empty()) {
      return {.input = {sum_of(call.splits)}, .output = {sum_of(call.output_splits)}};
    }
    const Shape shape = call.shape.value_or(Shape{call.count.value_or(0)});
    return {.input = {shape}, .output = {shape}};
  }
  const bool gathers = operation.find("gather") != string_view::npos;
  const bool scatters = operation.find("scatter") != string_view::npos;
  if (!call.shape && !call.count) {
    const Sizes nothing = gathers || scatters ? Sizes{{0}} : Sizes{};
    return {.input = nothing, .output = nothing};
  }
  const Shape shape = call.shape.value_or(Shape{call.count.value_or(0)});
  if (gathers) {
    return {.input = {shape}, .output = {times(shape, group_size)}};
  }
  if (operation == "scatter") {  // its output gives the size
    return {.input = {times(shape, group_size)}, .output = {shape}};
  }
  if (scatters) {
    return {.input = {shape}, .output = {part(shape, group_size)}};
  }
  return {.input = {shape}, .output = {shape}};
}

std::string recorded_dtype(string_view dtype) {
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [dtype](const auto& d) { return d.first == dtype; });
  return std::string(found == kDtypes.end() ? dtype : found->second);
}

}  // namespace ddpdoctor::imports
