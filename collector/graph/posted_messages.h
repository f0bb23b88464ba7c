// SPDX-License-Identifier: Apache-2.0
// Messages that a rank has posted by batch_isend_irecv(), as its stack shows them: the handle that
// it waits for knows no rank.
#pragma once

#include <span>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// Whom the "send" or "recv" that these frames wait for goes to or comes from: the message whose
/// turn it is in the loop over the handles, or the only rank that this direction is meant for.
std::optional<model::Rank> peer_of_posted(std::span<const stacks::Frame> frames,
                                          std::string_view operation);

/// The frames have posted what belongs to this operation of `rank`: a recv from it to its send.
bool has_posted_for(std::span<const stacks::Frame> frames, std::string_view operation,
                    model::Rank rank);

}  // namespace ddpdoctor::graph
