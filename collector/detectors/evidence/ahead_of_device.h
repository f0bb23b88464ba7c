// SPDX-License-Identifier: Apache-2.0
// A host with a GPU is in three places: at its line, in the call that its device is stuck in, and
// past the newest call that it launched.
#pragma once

#include <string>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "; its host is at train.py:40 in metrics and has launched up to all_reduce #7": said behind the
/// call that the device is stuck in. Empty where the host is in that call itself.
std::string ahead_of_device(const graph::Examination& examination, const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
