// SPDX-License-Identifier: Apache-2.0
// Compares the calls of ranks while they arrive: the first two that must agree and do not are a
// proof, long before anybody hangs, and also when nobody ever will.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "collector/sources/rings/tail.h"

namespace ddpdoctor::monitor {

/// Whether every rank must pass equally many elements to this wire::Operation.
bool sizes_must_agree(std::uint8_t operation);

class AgreementWatch {
 public:
  /// True when `call` contradicts an earlier one of the same group and sequence number. A pair that
  /// was contradicted once is not told again.
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
