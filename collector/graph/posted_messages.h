// SPDX-License-Identifier: Apache-2.0
// Messages that a rank posted by batch_isend_irecv(), from its stack: the handle it waits for does
// not name a rank.
#pragma once

#include <span>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The peer of the "send" or "recv" that these frames wait for: that of the current message in the
/// loop over the handles, or the only rank with messages in this direction.
std::optional<model::Rank> peer_of_posted(std::span<const stacks::Frame> frames,
                                          std::string_view operation);

/// The frames have posted the counterpart of this operation of `rank`: a recv for its send.
bool has_posted_for(std::span<const stacks::Frame> frames, std::string_view operation,
                    model::Rank rank);

}  // namespace ddpdoctor::graph
