// SPDX-License-Identifier: Apache-2.0
#include "agent/c10d/tensor_facts.h"

#include "agent/c10d/torch_layout.h"
#include "agent/c10d/torch_objects.h"
#include "agent/hooks.h"

namespace ddpdoctor::agent {
namespace {

constexpr int kUnknownDtype = 255;

TensorFacts ask_torch(const TorchFunctions& torch, std::uint64_t address) {
  auto* const tensor = reinterpret_cast<void*>(address);
  TensorFacts facts;
  std::int64_t count = 0;
  if (torch.count(tensor, &count) != 0) {
    return facts;
  }
  facts.count = count;
  std::int32_t dtype = kUnknownDtype;
  if (torch.dtype(tensor, &dtype) == 0 && dtype >= 0 && dtype < kUnknownDtype) {
    facts.dtype = static_cast<std::uint8_t>(dtype);
  }
  std::int64_t dimensions = 0;
  std::int64_t* sizes = nullptr;
  if (torch.dimensions != nullptr && torch.sizes != nullptr &&
      torch.dimensions(tensor, &dimensions) == 0 && torch.sizes(tensor, &sizes) == 0) {
    facts.dimensions = dimensions;
    facts.sizes = sizes;
  }
  return facts;
}

/// c10::TensorImpl and its SizesAndStrides, which keeps up to five sizes in itself.
TensorFacts read_layout(const TorchLayout& layout, std::uint64_t address) {
  constexpr std::uint64_t kMostInside = 5;
  constexpr std::uint16_t kScalarTypes = 47;
  const auto tensor = as<std::uint64_t>(address);
  TensorFacts facts;
  facts.count = as<std::int64_t>(tensor + static_cast<std::uint64_t>(layout.tensor_count));
  const auto dtype = as<std::uint16_t>(tensor + static_cast<std::uint64_t>(layout.tensor_dtype));
  if (dtype < kScalarTypes) {
    facts.dtype = static_cast<std::uint8_t>(dtype);
  }
  const std::uint64_t sizes = tensor + static_cast<std::uint64_t>(layout.tensor_sizes);
  const auto dimensions = as<std::uint64_t>(sizes);
  facts.dimensions = static_cast<std::int64_t>(dimensions);
  facts.sizes =
      dimensions <= kMostInside ? &as<std::int64_t>(sizes + 8) : as<const std::int64_t*>(sizes + 8);
  return facts;
}

bool layout_tells(const TorchLayout* layout) {
  return layout != nullptr && layout->tensor_count >= 0;
}

}  // namespace

bool tensors_tell() {
  const TorchFunctions& torch = torch_functions();
  return (torch.count != nullptr && torch.dtype != nullptr) || layout_tells(torch.layout);
}

TensorFacts tensor_facts(std::uint64_t address) {
  const TorchFunctions& torch = torch_functions();
  if (torch.count != nullptr && torch.dtype != nullptr) {
    return ask_torch(torch, address);
  }
  return layout_tells(torch.layout) ? read_layout(*torch.layout, address) : TensorFacts{};
}

}  // namespace ddpdoctor::agent
