// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks with a size that the other side does not expect. gloo accepts a short
// message in a long buffer and aborts the receiver of a long one.
#pragma once

#include <optional>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct UnlikeMessage {
  const model::CollectiveCall* sent = nullptr;
  const model::CollectiveCall* received = nullptr;
};

/// The message, longer than its buffer, that `rank` was receiving when it aborted: its newest open
/// call. Only if every call since the start is known; otherwise the counts would be wrong.
std::optional<UnlikeMessage> overlong_message(const graph::Examination& examination,
                                              model::Rank rank);

}  // namespace ddpdoctor::detectors
