// SPDX-License-Identifier: Apache-2.0
// A restarted job (an elastic restart, a second torchrun in one script) leaves the rings of its
// previous ranks behind: calls of two attempts must not be compared.
#pragma once

#include <vector>

#include "collector/sources/rings/reader.h"

namespace ddpdoctor::sources {

/// Marks the recordings of ranks that had ended when another process started as the same rank, and
/// all others that had ended by then. Running processes are never marked.
void mark_superseded(std::vector<Recording>& recordings);

}  // namespace ddpdoctor::sources
