// SPDX-License-Identifier: Apache-2.0
// The beginning of a capture whose end is lost → what of the job it still tells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Ranks, processes and calls that may be incomplete are left out and become unobserved: what is
/// lost must accuse nobody. The coverage says what is missing after `why` ("x.ddpd is cut short:
/// …"). An error when too little is left.
base::Result<model::JobModel> rescue_capture(std::string_view beginning, const std::string& name,
                                             const std::string& why);

/// A document cut anywhere, closed behind its last whole entry.
struct ClosedDocument {
  std::string text;
  std::vector<std::string> whole;  // members of the document that are all there
  bool in_observation = false;     // the last observation lacks processes
};

/// Empty text when not even one member is whole. Entries of the lists of a capture are kept one by
/// one, everything else whole or not at all.
ClosedDocument close_document(std::string_view beginning);

}  // namespace ddpdoctor::imports
