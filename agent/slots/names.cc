// SPDX-License-Identifier: Apache-2.0
#include "agent/slots/names.h"

#include <array>
#include <cstring>

namespace ddpdoctor::agent {
namespace {

constexpr std::uint32_t hash_of(const char* text) {
  std::uint32_t hash = 2166136261U;
  for (; *text != 0; ++text) {
    hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619U;
  }
  return hash;
}

constexpr Name name(Family family, int id, const char* text) {
  return {hash_of(text), family, static_cast<std::uint16_t>(id), text};
}

template <std::size_t Size>
constexpr std::array<Name, Size> by_hash(const Name (&names)[Size]) {
  std::array<Name, Size> sorted{};
  for (std::size_t i = 0; i < Size; ++i) {
    std::size_t at = i;
    for (; at > 0 && sorted[at - 1].hash > names[i].hash; --at) {
      sorted[at] = sorted[at - 1];
    }
    sorted[at] = names[i];
  }
  return sorted;
}

constexpr Name kAll[] = {
#define NCCL(id, symbol, probe) name(Family::kNccl, id, #symbol),
#include "agent/nccl/nccl_functions.inc"
#undef NCCL
#define MPI(id, arity, word, ...)                                                              \
  name(Family::kMpi, 3 * (id), "MPI_" #word), name(Family::kMpi, 3 * (id) + 1, "PMPI_" #word), \
      name(Family::kMpi, 3 * (id) + 2, "MPI_" #word "_c"),
#include "agent/mpi/mpi_calls.inc"
#undef MPI
#define CUDA(id, symbol) name(Family::kCuda, id, #symbol),
#include "agent/cuda/cuda_functions.inc"
#undef CUDA
#define CALL(id, symbol, ...) name(Family::kC10d, id, #symbol),
#define AROUND(id, symbol, ...) name(Family::kC10d, id, #symbol),
#define ENTRY(id, symbol, ...) name(Family::kC10d, id, #symbol),
#include "agent/c10d/c10d_hooks.inc"
#undef CALL
#undef AROUND
#undef ENTRY
};

constexpr auto kSorted = by_hash(kAll);
static_assert(kSorted.size() <= kMostNames);

/// Avoids hashing most symbols of most objects.
bool may_be_ours(const char* symbol) {
  switch (symbol[0]) {
    case 'n':
      return strncmp(symbol, "nccl", 4) == 0;
    case 'M':
      return strncmp(symbol, "MPI_", 4) == 0;
    case 'P':
      return strncmp(symbol, "PMPI_", 5) == 0;
    case 'c':
      return symbol[1] == 'u';
    case '_':
      return strncmp(symbol, "_ZN4c10d", 8) == 0;
    default:
      return false;
  }
}

}  // namespace

const int kNames = static_cast<int>(kSorted.size());

const Name& name_at(int place) {
  return kSorted[static_cast<std::size_t>(place)];
}

int place_of(const char* symbol) {
  if (!may_be_ours(symbol)) {
    return -1;
  }
  const std::uint32_t hash = hash_of(symbol);
  std::size_t low = 0;
  std::size_t high = kSorted.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (kSorted[middle].hash < hash) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low < kSorted.size() && kSorted[low].hash == hash; ++low) {
    if (strcmp(kSorted[low].text, symbol) == 0) {
      return static_cast<int>(low);
    }
  }
  return -1;
}

}  // namespace ddpdoctor::agent
