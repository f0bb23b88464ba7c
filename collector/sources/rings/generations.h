// SPDX-License-Identifier: Apache-2.0
// A job that is started again (an elastic restart, a second torchrun in one script) leaves the
// rings of its former ranks behind: calls of two lives must not be compared.
#pragma once

#include <vector>

#include "collector/sources/rings/reader.h"

namespace ddpdoctor::sources {

/// Marks the recordings of ranks that had ended when a process began to be the same rank, and of
/// all that had ended by then. What is alive is never marked.
void mark_superseded(std::vector<Recording>& recordings);

}  // namespace ddpdoctor::sources
