// SPDX-License-Identifier: Apache-2.0
// c10d::ReduceOp is { virtual table, reference counts, operation, supplement }; the counts are 16
// bytes up to torch 2.3 and 8 since. In the options of a call it is a member, so its counts are 0,
// and { root, root tensor } of reduce and the timeout follow it. Both layouts are tried once; only
// one can have a timeout at its position, where the other has a null pointer.
#include "agent/c10d/torch_options.h"

#include <atomic>
#include <cstring>

#include "agent/c10d/torch_objects.h"
#include "agent/c10d/torch_types.h"
#include "agent/record/safe_read.h"
#include "wire/layout.h"

namespace ddpdoctor::agent {
namespace {

constexpr std::uint64_t kWord = 8;
constexpr std::uint8_t kOperations = 9;  // SUM … PREMUL_SUM
constexpr std::uint8_t kPremulSum = 8;   // the one that has a supplement

enum : int { kUnproven = 0, kOff = -1 };  // positive: the offset of the operation
constinit std::atomic<int> operation_at{kUnproven};
constexpr int kPlaces[] = {16, 24};
constexpr int kMostFailures = 8;
constinit std::atomic<int> failures{0};

/// Milliseconds in torch's representation: -1 is "the group's own", never 0, and lower than any
/// address of a process.
bool is_timeout(std::uint64_t word) {
  constexpr std::uint64_t kLongest = 1ULL << 45U;
  return word == ~std::uint64_t{0} || (word > 0 && word < kLongest);
}

bool is_root(std::uint64_t word, std::int32_t ranks) {
  constexpr std::uint64_t kMostRanks = 1U << 24U;
  return word < (ranks > 0 ? static_cast<std::uint64_t>(ranks) : kMostRanks);
}

/// The number of words of the longer layout: ReduceOp, root, root tensor, timeout. Other options
/// have no root.
constexpr std::size_t kWordsWithRoot = 8;
constexpr std::size_t kWordsWithout = 6;

bool fits(const std::uint64_t* words, int place, bool has_root, std::int32_t ranks) {
  const int operation = place / static_cast<int>(kWord);
  for (int count = 1; count < operation; ++count) {
    if (words[count] != 0) {
      return false;
    }
  }
  const auto kind = static_cast<std::uint8_t>(words[operation]);
  const std::uint64_t supplement = words[operation + 1];
  const int after = operation + 2;
  return kind < kOperations && (supplement == 0 || kind == kPremulSum) &&
         (!has_root || (is_root(words[after], ranks) && words[after + 1] == 0)) &&
         is_timeout(words[has_root ? after + 2 : after]);
}

bool is_reduce_op(SafeRead& memory, std::uint64_t object) {
  char name[kTypeName];
  return type_name(memory, object, name) && strcmp(name, "N4c10d8ReduceOpE") == 0;
}

/// Determines this torch's offset of the operation from the options of one call.
void prove(std::uint64_t options, bool has_root, std::int32_t ranks) {
  SafeRead memory;
  if (!memory.possible()) {
    return;  // no descriptors left: tries again at the next call
  }
  std::uint64_t words[kWordsWithRoot];
  const std::size_t bytes = kWord * (has_root ? kWordsWithRoot : kWordsWithout);
  int found = kUnproven;
  int fitting = 0;
  if (memory.bytes(options, words, bytes) && is_reduce_op(memory, options)) {
    for (const int place : kPlaces) {
      if (fits(words, place, has_root, ranks)) {
        found = place;
        ++fitting;
      }
    }
  }
  if (fitting == 1) {
    operation_at.store(found, std::memory_order_relaxed);
  } else if (failures.fetch_add(1, std::memory_order_relaxed) + 1 >= kMostFailures) {
    operation_at.store(kOff, std::memory_order_relaxed);
  }
}

void read_reduce(std::uint64_t options, bool has_root, std::int32_t ranks, OptionFacts& facts) {
  if (operation_at.load(std::memory_order_relaxed) == kUnproven) {
    prove(options, has_root, ranks);
  }
  const int place = operation_at.load(std::memory_order_relaxed);
  if (place <= 0) {
    facts.unproven |= wire::kNoReduceOps | (has_root ? wire::kNoRoots : 0U);
    return;
  }
  const std::uint64_t operation = options + static_cast<std::uint64_t>(place);
  if (as<std::uint8_t>(operation) < kOperations) {
    facts.reduce_op = as<std::uint8_t>(operation);
  } else {
    facts.unproven |= wire::kNoReduceOps;
  }
  if (has_root) {
    const auto root = as<std::uint64_t>(operation + 2 * kWord);
    if (is_root(root, ranks) && as<std::uint64_t>(operation + 3 * kWord) == 0) {
      facts.root = static_cast<std::int32_t>(root);
    } else {
      facts.unproven |= wire::kNoRoots;
    }
  }
}

/// Options that begin with the root: { root, root tensor, timeout } of broadcast, { root, timeout }
/// of gather and scatter.
void read_root(std::uint64_t options, bool has_tensor, std::int32_t ranks, OptionFacts& facts) {
  const auto root = as<std::uint64_t>(options);
  const auto second = as<std::uint64_t>(options + kWord);
  if (is_root(root, ranks) &&
      (has_tensor ? second == 0 && is_timeout(as<std::uint64_t>(options + 2 * kWord))
                  : is_timeout(second))) {
    facts.root = static_cast<std::int32_t>(root);
  } else {
    facts.unproven |= wire::kNoRoots;
  }
}

}  // namespace

OptionFacts option_facts(const Hook& hook, std::uint64_t options, std::int32_t ranks) {
  OptionFacts facts;
  if (hook.has_reduce_op != 0) {
    read_reduce(options, hook.has_root != 0, ranks, facts);
  } else if (hook.has_root != 0) {
    read_root(options, hook.operation == wire::Operation::kBroadcast, ranks, facts);
  }
  return facts;
}

}  // namespace ddpdoctor::agent
