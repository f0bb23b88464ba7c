// SPDX-License-Identifier: Apache-2.0
#include "agent/c10d/tensor_facts.h"

#include <atomic>
#include <cstring>

#include "agent/c10d/torch_objects.h"
#include "agent/c10d/torch_types.h"
#include "agent/hooks.h"
#include "agent/record/safe_read.h"

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

/// Offsets in c10::TensorImpl of its SizesAndStrides, element count and type: the layouts up to
/// 2.3, up to 2.12, and since. Tensors themselves show which one applies.
struct TensorPlaces {
  std::uint64_t sizes;
  std::uint64_t count;
  std::uint64_t dtype;
};
constexpr TensorPlaces kPlaces[] = {{72, 168, 176}, {64, 160, 168}, {56, 152, 160}};
constexpr std::uint64_t kMostInside = 5;  // number of sizes stored in the tensor itself
constexpr std::uint64_t kMostDimensions = 64;
constexpr std::uint16_t kScalarTypes = 64;

constinit std::atomic<const TensorPlaces*> proven{nullptr};
constexpr int kMostFailures = 64;  // scalars also count as failures
constinit std::atomic<int> failures{0};

/// The product of the sizes at these offsets equals the count. Scalars and single elements prove
/// nothing, because zeros and ones are everywhere.
bool fits(SafeRead& memory, std::uint64_t tensor, const TensorPlaces& places) {
  std::uint64_t dimensions = 0;
  std::int64_t count = 0;
  std::uint16_t dtype = 0;
  if (!memory.value(tensor + places.sizes, dimensions) || dimensions == 0 ||
      dimensions > kMostDimensions || !memory.value(tensor + places.count, count) ||
      !memory.value(tensor + places.dtype, dtype) || dtype >= kScalarTypes) {
    return false;
  }
  std::uint64_t sizes = tensor + places.sizes + 8;
  if (dimensions > kMostInside && !memory.value(sizes, sizes)) {
    return false;
  }
  std::int64_t product = 1;
  for (std::uint64_t i = 0; i < dimensions; ++i) {
    std::int64_t size = 0;
    if (!memory.value(sizes + 8 * i, size) || size < 0 ||
        __builtin_mul_overflow(product, size, &product)) {
      return false;
    }
  }
  return product == count && count > 1;
}

void prove(std::uint64_t tensor) {
  SafeRead memory;
  char name[kTypeName];
  if (!memory.possible()) {
    return;
  }
  const TensorPlaces* found = nullptr;
  int fitting = 0;
  if (type_name(memory, tensor, name) && strstr(name, "TensorImpl") != nullptr) {
    for (const TensorPlaces& places : kPlaces) {
      if (fits(memory, tensor, places)) {
        found = &places;
        ++fitting;
      }
    }
  }
  if (fitting == 1) {
    proven.store(found, std::memory_order_relaxed);
  } else {
    failures.fetch_add(1, std::memory_order_relaxed);
  }
}

TensorFacts read_tensor(std::uint64_t address) {
  const auto tensor = as<std::uint64_t>(address);
  if (proven.load(std::memory_order_relaxed) == nullptr &&
      failures.load(std::memory_order_relaxed) < kMostFailures) {
    prove(tensor);
  }
  TensorFacts facts;
  const TensorPlaces* const places = proven.load(std::memory_order_relaxed);
  if (places == nullptr) {
    return facts;
  }
  facts.count = as<std::int64_t>(tensor + places->count);
  const auto dtype = as<std::uint16_t>(tensor + places->dtype);
  if (dtype < kScalarTypes) {
    facts.dtype = static_cast<std::uint8_t>(dtype);
  }
  const std::uint64_t sizes = tensor + places->sizes;
  const auto dimensions = as<std::uint64_t>(sizes);
  facts.dimensions = static_cast<std::int64_t>(dimensions);
  facts.sizes =
      dimensions <= kMostInside ? &as<std::int64_t>(sizes + 8) : as<const std::int64_t*>(sizes + 8);
  return facts;
}

}  // namespace

bool tensors_tell() {
  const TorchFunctions& torch = torch_functions();
  return (torch.count != nullptr && torch.dtype != nullptr) ||
         proven.load(std::memory_order_relaxed) != nullptr ||
         failures.load(std::memory_order_relaxed) == 0;
}

TensorFacts tensor_facts(std::uint64_t address) {
  const TorchFunctions& torch = torch_functions();
  return torch.count != nullptr && torch.dtype != nullptr ? ask_torch(torch, address)
                                                          : read_tensor(address);
}

}  // namespace ddpdoctor::agent
