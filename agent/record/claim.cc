// SPDX-License-Identifier: Apache-2.0
#include "agent/record/claim.h"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace ddpdoctor::agent {
namespace {

std::int32_t number(const char* text) {
  if (*text < '0' || *text > '9') {
    return -1;
  }
  const unsigned long value = strtoul(text, nullptr, 10);
  return value < 10000000 ? static_cast<std::int32_t>(value) : -1;
}

/// In order of reliability: RANK, LOCAL_RANK, then batch systems, each with its size.
enum : int { kRank, kLocalRank, kWorldSize, kNodeRank, kBatch };
constexpr const char* kNames[] = {"RANK=",
                                  "LOCAL_RANK=",
                                  "WORLD_SIZE=",
                                  "NODE_RANK=",
                                  "OMPI_COMM_WORLD_RANK=",
                                  "OMPI_COMM_WORLD_SIZE=",
                                  "PMI_RANK=",
                                  "PMI_SIZE=",
                                  "SLURM_PROCID=",
                                  "SLURM_NTASKS="};
constexpr int kVariables = sizeof kNames / sizeof kNames[0];

}  // namespace

std::int32_t number_from_environment(const char* name) {
  const char* const text = getenv(name);
  return text == nullptr ? -1 : number(text);
}

Claim claim_of_environment() {
  std::int32_t value[kVariables];
  for (std::int32_t& one : value) {
    one = -1;
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char first = **entry;  // a single pass, because every exiting process comes here
    if (first != 'R' && first != 'L' && first != 'W' && first != 'N' && first != 'O' &&
        first != 'P' && first != 'S') {
      continue;
    }
    for (int i = 0; i < kVariables; ++i) {
      const std::size_t length = strlen(kNames[i]);
      if (first == *kNames[i] && strncmp(*entry, kNames[i], length) == 0) {
        value[i] = number(*entry + length);
      }
    }
  }
  Claim claim{.rank = value[kRank],
              .local_rank = value[kLocalRank],
              .world_size = value[kWorldSize],
              .variable = kNames[kRank]};
  if (claim.rank < 0 && claim.local_rank >= 0 && claim.world_size > 0 && value[kNodeRank] <= 0) {
    claim.rank = claim.local_rank;  // Lightning's processes have only this
    claim.variable = kNames[kLocalRank];
  }
  for (int i = kBatch; i < kVariables && claim.rank < 0; i += 2) {
    if (value[i] >= 0 && value[i + 1] > 1) {  // a batch script is task 0 of 1
      claim.rank = value[i];
      claim.world_size = value[i + 1];
      claim.variable = kNames[i];
    }
  }
  return claim;
}

}  // namespace ddpdoctor::agent
