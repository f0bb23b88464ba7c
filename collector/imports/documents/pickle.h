// SPDX-License-Identifier: Apache-2.0
// Python's pickles, protocols 0 to 5, as plain data. A pickle is a program; this reader knows only
// those of its instructions that build plain data, and executes nothing. It may come from anybody:
// a trust boundary.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

/// Why a pickle was not read.
struct PickleProblem {
  base::Error error;
  /// It asks for a function or class that no plain data needs, and names it.
  bool wants_to_run = false;
};

/// Whether bytes begin like a pickle. Protocols 0 and 1 have no mark of their own: only their
/// beginnings that a dict or list of plain data has are known.
bool begins_like_pickle(std::string_view head);

/// Reads into `out`, which is cleared first; texts in it point into `bytes`. A pickle that ends
/// too early is not refused: what it had built is there, and `out.cut` is set. Refused: what wants
/// anything but None, bool, int, float, text, bytes, list, tuple, dict, set, OrderedDict and
/// defaultdict; what is larger than 1 GiB or 2^26 values; what makes no sense. `name` is the file
/// for messages.
tl::expected<void, PickleProblem> read_pickle(std::string_view bytes, const std::string& name,
                                              PlainDocument& out);

}  // namespace ddpdoctor::imports
