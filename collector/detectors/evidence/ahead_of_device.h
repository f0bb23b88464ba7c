// SPDX-License-Identifier: Apache-2.0
// A host with a GPU has three positions: its current line, the call in which its device is stuck,
// and the newest call that it launched.
#pragma once

#include <string>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "; its host is at train.py:40 in metrics and has launched up to all_reduce #7": appended after
/// the call in which the device is stuck. Empty if the host is in that call itself.
std::string ahead_of_device(const graph::Examination& examination, const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
