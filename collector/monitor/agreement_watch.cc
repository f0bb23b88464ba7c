// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/agreement_watch.h"

#include "wire/events.h"

namespace ddpdoctor::monitor {
namespace {

// Ranks run ahead of each other by a few hundred calls at most; above this number the oldest calls
// are dropped.
constexpr std::size_t kRemembered = 65536;
constexpr std::uint8_t kUnknownByte = 255;

bool differ(std::uint8_t a, std::uint8_t b) {
  return a != kUnknownByte && b != kUnknownByte && a != b;
}

bool contradict(const sources::CallSignature& a, const sources::CallSignature& b) {
  if (a.operation != b.operation) {
    return true;
  }
  const bool sized = sizes_must_agree(a.operation);
  return differ(a.dtype, b.dtype) || differ(a.reduce_op, b.reduce_op) ||
         (a.root >= 0 && b.root >= 0 && a.root != b.root) ||
         (sized && a.count >= 0 && b.count >= 0 && a.count != b.count);
}

}  // namespace

bool sizes_must_agree(std::uint8_t number) {
  const auto operation = static_cast<wire::Operation>(number);
  return operation != wire::Operation::kAllToAll && operation != wire::Operation::kAllToAllSingle &&
         operation != wire::Operation::kAllGather && operation != wire::Operation::kGather &&
         operation != wire::Operation::kScatter;
}

bool AgreementWatch::contradicts(const sources::CallSignature& call) {
  if (call.group.empty()) {
    return false;  // without a name, the group cannot be matched between ranks
  }
  const auto [entry, added] = seen_.try_emplace({call.group, call.sequence}, Seen{.first = call});
  Seen& seen = entry->second;
  ++seen.ranks;
  const bool news = !added && !seen.told && contradict(seen.first, call);
  seen.told = seen.told || news;
  if (call.group_size > 0 && seen.ranks >= call.group_size) {
    seen_.erase(entry);
  } else if (seen_.size() > kRemembered) {
    seen_.erase(seen_.begin());
  }
  return news;
}

}  // namespace ddpdoctor::monitor
