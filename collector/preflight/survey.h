// SPDX-License-Identifier: Apache-2.0
// Runs the checks. Each has a child process and a deadline of its own, because a name server, a
// file server or a port may never answer; what is not ready in time is said to be unknown.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "collector/preflight/check.h"

namespace ddpdoctor::preflight {

/// What one check said, in its own order.
struct Answer {
  const Check* check = nullptr;
  Remarks remarks;
};

/// All at once; the answers stand in the order of `asked`.
std::vector<Answer> survey(std::span<const Check* const> asked, const Setting& setting,
                           std::chrono::milliseconds patience);

/// Whether something was found that will make the job fail or hang.
bool will_break(const std::vector<Answer>& answers);

}  // namespace ddpdoctor::preflight
