// SPDX-License-Identifier: Apache-2.0
// Which exception each `except` of a frame has caught, as far as the rank still shows it: Python
// keeps an exception only while it is handled, and deletes its name when the handler ends.
#pragma once

#include <string>
#include <vector>

#include "collector/model/observed_values.h"
#include "collector/values/user_frames.h"

namespace ddpdoctor::values {

/// What a rank shows of one clause.
struct Caught {
  std::string value;   // "ValueError('no rows')", "no exception"; empty = unknown
  std::string reason;  // why it is unknown
};

/// `clause` is an except of the frame's function.
Caught caught_by(const UserFrame& frame, const program::Decision& clause);

}  // namespace ddpdoctor::values
