// SPDX-License-Identifier: Apache-2.0
// Determines which exception each `except` of a frame has caught, if memory still shows it: Python
// keeps an exception only while a handler runs, and deletes its name when the handler ends.
#pragma once

#include <string>
#include <vector>

#include "collector/model/observed_values.h"
#include "collector/values/user_frames.h"

namespace ddpdoctor::values {

/// What is known about one `except` clause on a rank.
struct Caught {
  std::string value;   // "ValueError('no rows')", "no exception"; empty = unknown
  std::string reason;  // why it is unknown
};

/// `clause` must be an `except` of the frame's function.
Caught caught_by(const UserFrame& frame, const program::Decision& clause);

}  // namespace ddpdoctor::values
