// SPDX-License-Identifier: Apache-2.0
// ZeroMQ's Context.term() returns when every socket of the context is closed and has sent its
// messages (zmq_ctx_term). Python also calls it in the destructor of a context.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// One finding per line that waits there; also of a process that was aborted in that wait.
Findings context_terms(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
