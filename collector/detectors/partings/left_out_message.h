// SPDX-License-Identifier: Apache-2.0
// A rank waits for a message of a peer that is already in the next collective. Other ranks made the
// same message since the collective before, and the peer made it in earlier iterations: it skipped
// the message.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// `standing` waits in a send or recv, and its peer is in a collective. If the records show that
/// other ranks exchanged a message with `standing` in this round and the peer did not, or (without
/// records of messages) other ranks are waiting in that message, the finding blames the peer and
/// names the condition that leads to the message. Otherwise it is unchanged.
void tell_left_out_message(const graph::Examination& examination, const graph::Standing& standing,
                           Finding& finding);

}  // namespace ddpdoctor::detectors
