// SPDX-License-Identifier: Apache-2.0
// The tags by which a send and a recv know each other.
#pragma once

#include <string>

#include "collector/graph/standing.h"

namespace ddpdoctor::detectors {

/// The argument of send() or recv(), from the record or the stack; empty if neither was read.
std::string tag_of(const graph::Standing& standing);

/// False if one of them is unknown.
bool tags_differ(const graph::Standing& a, const graph::Standing& b);

}  // namespace ddpdoctor::detectors
