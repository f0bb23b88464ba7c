// SPDX-License-Identifier: Apache-2.0
// A process that is in a native call which only ends something: the abort of a communicator.
#pragma once

#include <optional>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The call, and the thread that asked for it and waits, if that is another one.
struct TeardownCall {
  const model::Thread* thread = nullptr;
  const model::Frame* call = nullptr;
  const model::Thread* asker = nullptr;      // null: unknown, or the thread itself
  const model::Frame* asker_call = nullptr;  // "c10d::ProcessGroupNCCL::abort()"
};

/// Nothing if torch's watchdog ends the communicator: that follows from an earlier timeout.
std::optional<TeardownCall> teardown_call(const model::Process& process);

}  // namespace ddpdoctor::detectors
