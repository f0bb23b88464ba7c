// SPDX-License-Identifier: Apache-2.0
// The log of an inference server (vLLM, SGLang, and others behind uvicorn) shows whether it
// answered requests until its end.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// What a server did last, and the line that shows it.
struct Served {
  std::string what;  // "generated 98.7 tokens/s", "answered a request"
  std::string line;
};

/// Nothing if no server wrote the log, if its newest lines report trouble, or if it had requests
/// but produced nothing.
std::optional<Served> served_until_end(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
