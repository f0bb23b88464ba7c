// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/torch/tensor_item.h"

#include <bit>
#include <cmath>
#include <string>
#include <string_view>

#include "collector/stacks/torch/cpp_objects.h"

namespace ddpdoctor::stacks {

namespace {

// c10::TensorImpl and c10::StorageImpl begin with the virtual table and two reference counts of 8
// or (since 2.13) 4 bytes; then follow the storage or the data.
constexpr RemoteAddress kBehindCounts[] = {16, 24};
// From there in StorageImpl: DataPtr consists of data, context, deleter and device.
constexpr RemoteAddress kDevice = 24;
constexpr RemoteAddress kBytes = 32;
constexpr std::int8_t kProcessor = 0;
// From the number of dimensions in TensorImpl: five sizes and five strides are in between.
constexpr RemoteAddress kStorageOffset = 88;

double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10U) & 0x1F;
  const int fraction = bits & 0x3FF;
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 0x1F) {
    return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  }
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

template <typename T, typename As>
std::optional<TensorNumber> number(RemoteMemory& memory, RemoteAddress at) {
  const auto value = memory.get<T>(at);
  return value ? std::optional<TensorNumber>(static_cast<As>(*value)) : std::nullopt;
}

std::optional<TensorNumber> number_of(RemoteMemory& memory, RemoteAddress at,
                                      std::string_view dtype) {
  if (dtype == "bool") {
    const auto value = memory.get<std::uint8_t>(at);
    return value ? std::optional<TensorNumber>(*value != 0) : std::nullopt;
  }
  if (dtype == "uint8") {
    return number<std::uint8_t, std::int64_t>(memory, at);
  }
  if (dtype == "int8") {
    return number<std::int8_t, std::int64_t>(memory, at);
  }
  if (dtype == "int16") {
    return number<std::int16_t, std::int64_t>(memory, at);
  }
  if (dtype == "int32") {
    return number<std::int32_t, std::int64_t>(memory, at);
  }
  if (dtype == "int64") {
    return number<std::int64_t, std::int64_t>(memory, at);
  }
  if (dtype == "float32") {
    return number<float, double>(memory, at);
  }
  if (dtype == "float64") {
    return number<double, double>(memory, at);
  }
  const auto bits =
      dtype == "float16" || dtype == "bfloat16" ? memory.get<std::uint16_t>(at) : std::nullopt;
  if (!bits) {
    return std::nullopt;
  }
  return dtype == "float16"
             ? TensorNumber(from_half(*bits))
             : TensorNumber(double{std::bit_cast<float>(std::uint32_t{*bits} << 16U)});
}

std::int64_t bytes_of(std::string_view dtype) {
  return dtype.ends_with("64") ? 8 : dtype.ends_with("32") ? 4 : dtype.ends_with("16") ? 2 : 1;
}

/// The address of the only element.
std::optional<RemoteAddress> element(RemoteMemory& memory, RemoteAddress tensor,
                                     const TorchLayout& layout, std::int64_t bytes) {
  const auto offset = memory.get<std::int64_t>(tensor + layout.shape + kStorageOffset);
  for (const RemoteAddress behind : kBehindCounts) {
    const auto storage = memory.get<RemoteAddress>(tensor + behind);
    if (!storage || *storage == 0 || cpp_type_name(memory, *storage) != "N3c1011StorageImplE") {
      continue;
    }
    const auto data = memory.get<RemoteAddress>(*storage + behind);
    const auto size = memory.get<std::int64_t>(*storage + behind + kBytes);
    const bool here = memory.get<std::int8_t>(*storage + behind + kDevice) == kProcessor;
    if (!here || !data || *data == 0 || !size || !offset || *offset < 0 ||
        *offset > *size / bytes - 1) {
      return std::nullopt;
    }
    return *data + static_cast<RemoteAddress>(*offset * bytes);
  }
  return std::nullopt;
}

std::optional<TensorNumber> item_as(PythonObjects& objects, const TorchLayout& layout,
                                    RemoteAddress object) {
  RemoteMemory& memory = objects.memory();
  const auto tensor = memory.get<RemoteAddress>(object + objects.header_size() + layout.variable);
  if (!tensor || *tensor == 0 ||
      !cpp_type_name(memory, *tensor).value_or("").ends_with("TensorImplE") ||
      memory.get<std::int64_t>(*tensor + layout.count) != 1) {
    return std::nullopt;
  }
  const auto type = memory.get<std::uint16_t>(*tensor + layout.dtype);
  const auto dtype = type ? dtype_name(*type) : std::nullopt;
  const auto at =
      dtype ? element(memory, *tensor, layout, bytes_of(*dtype)) : std::optional<RemoteAddress>();
  return at ? number_of(memory, *at, *dtype) : std::nullopt;
}

}  // namespace

std::optional<TensorNumber> tensor_item(PythonObjects& objects, const TorchLayouts& layouts,
                                        RemoteAddress object, std::string_view type_name) {
  const std::string_view name = type_name.substr(type_name.rfind('.') + 1);
  if (name != "Tensor" && name != "Parameter" && name != "Buffer") {
    return std::nullopt;
  }
  if (layouts.exact != nullptr) {
    return item_as(objects, *layouts.exact, object);
  }
  std::optional<TensorNumber> only;
  for (const TorchLayout* layout : layouts.others) {
    const auto one = item_as(objects, *layout, object);
    if (one && only && *one != *only) {
      return std::nullopt;
    }
    only = one ? one : only;
  }
  return only;
}

}  // namespace ddpdoctor::stacks
