// SPDX-License-Identifier: Apache-2.0
// Compares the calls of ranks as they arrive: the first two calls that contradict each other are a
// proof, long before any rank hangs, and even if none ever does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "collector/sources/rings/tail.h"

namespace ddpdoctor::monitor {

/// True if every rank must pass the same number of elements to this wire::Operation.
bool sizes_must_agree(std::uint8_t operation);

class AgreementWatch {
 public:
  /// True if `call` contradicts an earlier one with the same group and sequence number. Each pair
  /// is reported once.
  bool contradicts(const sources::CallSignature& call);

 private:
  struct Seen {
    sources::CallSignature first;
    int ranks = 0;
    bool told = false;
  };
  std::map<std::pair<std::string, std::uint32_t>, Seen> seen_;
};

}  // namespace ddpdoctor::monitor
