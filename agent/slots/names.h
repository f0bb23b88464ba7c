// SPDX-License-Identifier: Apache-2.0
// Every function of another library that the agent interposes, by exported name.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

enum class Family : std::uint8_t { kNccl, kMpi, kCuda, kC10d };

/// A name of nccl_functions.inc, mpi_calls.inc, cuda_functions.inc or c10d_hooks.inc.
struct Name {
  std::uint32_t hash;
  Family family;
  // Index in the family's table; for MPI three per function, in the order of MpiName.
  std::uint16_t id;
  const char* text;
};

/// Index of a symbol's name among all names; -1 if it is not interposed.
int place_of(const char* symbol);
const Name& name_at(int place);
extern const int kNames;
inline constexpr int kMostNames = 512;

}  // namespace ddpdoctor::agent
