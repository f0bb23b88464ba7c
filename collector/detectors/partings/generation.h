// SPDX-License-Identifier: Apache-2.0
// Whether a side of a divergence generates text: at its recorded call if its host has run ahead of
// that call, else where its stack is.
#pragma once

#include <optional>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// In generate() of a language model, or in the user's own generation.
bool is_generating(const graph::Examination& examination, const Side& side);

/// The line of the user's own generation (own_generation() in paths/libraries.h).
std::optional<model::CallSite> own_generation_line(const graph::Examination& examination,
                                                   const Side& side);

}  // namespace ddpdoctor::detectors
