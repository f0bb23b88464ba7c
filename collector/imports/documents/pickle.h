// SPDX-License-Identifier: Apache-2.0
// Reads Python's pickles, protocols 0 to 5, as plain data. A pickle is a program; this reader
// accepts only instructions that build plain data and executes nothing. The bytes may be untrusted.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

/// Why a pickle was refused.
struct PickleProblem {
  base::Error error;
  /// it refers to a function or class that plain data does not need
  bool wants_to_run = false;
};

/// True if the bytes begin like a pickle. Protocols 0 and 1 have no signature: only the beginnings
/// of a plain dict or list are recognized.
bool begins_like_pickle(std::string_view head);

/// Reads into `out`, which is cleared first; texts in it point into `bytes`. A truncated pickle is
/// not refused: `out` contains what was built, and `out.cut` is set. Refuses types other than None,
/// bool, int, float, text, bytes, list, tuple, dict, set, OrderedDict and defaultdict; more than 1
/// GiB or 2^26 values; and invalid data. `name` is the file name for messages.
tl::expected<void, PickleProblem> read_pickle(std::string_view bytes, const std::string& name,
                                              PlainDocument& out);

}  // namespace ddpdoctor::imports
