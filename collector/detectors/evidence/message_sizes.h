// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks whose sizes are not what the other side expects. gloo puts a short one
// into a long buffer and aborts the receiver of a long one.
#pragma once

#include <optional>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct UnlikeMessage {
  const model::CollectiveCall* sent = nullptr;
  const model::CollectiveCall* received = nullptr;
};

/// The message longer than its buffer that `rank` was receiving when it aborted: its newest call,
/// not over. Only where every call since the start is known, or the counting would be off.
std::optional<UnlikeMessage> overlong_message(const graph::Examination& examination,
                                              model::Rank rank);

}  // namespace ddpdoctor::detectors
