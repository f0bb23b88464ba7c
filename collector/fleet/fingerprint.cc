// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/fingerprint.h"

#include <algorithm>

#include "collector/monitor/agreement_watch.h"

namespace ddpdoctor::fleet {
namespace {

constexpr std::uint64_t kSeed = 0x9E3779B97F4A7C15U;

/// One round of a 64-bit mixer: each bit of both inputs changes about half of the output bits.
std::uint64_t mixed(std::uint64_t chain, std::uint64_t value) {
  chain = (chain ^ value) * 0xFF51AFD7ED558CCDU;
  chain ^= chain >> 33U;
  chain *= 0xC4CEB9FE1A85EC53U;
  return chain ^ (chain >> 33U);
}

std::uint64_t with_call(std::uint64_t chain, const sources::CallSignature& call) {
  constexpr unsigned kByte = 8;
  const std::uint64_t kinds = std::uint64_t{call.operation} | std::uint64_t{call.dtype} << kByte |
                              std::uint64_t{call.reduce_op} << (2 * kByte);
  const std::int64_t count = monitor::sizes_must_agree(call.operation) ? call.count : -1;
  return mixed(mixed(mixed(chain, kinds), static_cast<std::uint64_t>(count)),
               static_cast<std::uint32_t>(call.root));
}

}  // namespace

void Fingerprint::add(const sources::CallSignature& call) {
  if (call.sequence <= hashes_.sequence) {
    return;  // one of several calls of the backend that are one call of torch
  }
  if (call.sequence != hashes_.sequence + 1) {
    known_ = false;
    hashes_.newest.fill(0);
    hashes_.at_step.fill(0);
  }
  if (call.sequence % kBlock == 1) {
    known_ = true;
    chain_ = kSeed + call.sequence / kBlock;
  }
  hashes_.sequence = call.sequence;
  chain_ = with_call(chain_, call);
  const std::uint32_t hash = known_ ? std::max(static_cast<std::uint32_t>(chain_), 1U) : 0;
  std::shift_right(hashes_.newest.begin(), hashes_.newest.end(), 1);
  hashes_.newest.front() = hash;
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    if (call.sequence % kSteps[i] == 0) {
      hashes_.at_step[i] = hash;
    }
  }
}

}  // namespace ddpdoctor::fleet
