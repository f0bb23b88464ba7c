// SPDX-License-Identifier: Apache-2.0
// Recovers a job from the beginning of a capture whose end is lost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Omits ranks, processes and calls that may be incomplete; they become unobserved, so that lost
/// data accuses no rank. The coverage says what is missing after `why` ("x.ddpd is cut short: …").
/// Fails if too little is left.
base::Result<model::JobModel> rescue_capture(std::string_view beginning, const std::string& name,
                                             const std::string& why);

/// A document cut at any position and closed after its last complete entry.
struct ClosedDocument {
  std::string text;
  std::vector<std::string> whole;  // complete members of the document
  bool in_observation = false;     // the last observation lacks processes
};

/// The text is empty if no member is complete. Entries of a capture's lists are kept one by one,
/// everything else completely or not at all.
ClosedDocument close_document(std::string_view beginning);

}  // namespace ddpdoctor::imports
