// SPDX-License-Identifier: Apache-2.0
// One collective in the source.
#pragma once

#include <string>

#include "collector/model/collective.h"

namespace ddpdoctor::detectors {

/// A call in the source that other ranks must make as well.
struct Launch {
  enum class Is { kCollective, kUnshards, kMessage, kNewGroup, kDdpForward };
  std::string operation;
  model::CallSite site;
  Is is = Is::kCollective;
};

}  // namespace ddpdoctor::detectors
