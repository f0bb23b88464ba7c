// SPDX-License-Identifier: Apache-2.0
// Runs the checks. Each has its own child process and deadline, because a name server, file server
// or port may never answer; a check that is not finished in time is reported as unknown.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "collector/preflight/check.h"

namespace ddpdoctor::preflight {

/// The remarks of one check, in its order.
struct Answer {
  const Check* check = nullptr;
  Remarks remarks;
};

/// Runs all checks at once; returns the answers in the order of `asked`.
std::vector<Answer> survey(std::span<const Check* const> asked, const Setting& setting,
                           std::chrono::milliseconds patience);

/// True if a check found something that will make the job fail or hang.
bool will_break(const std::vector<Answer>& answers);

}  // namespace ddpdoctor::preflight
