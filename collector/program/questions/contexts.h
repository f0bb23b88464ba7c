// SPDX-License-Identifier: Apache-2.0
// What the libraries' contexts around a line, and their calls in a file, do to gradients and steps.
#pragma once

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// `with torch.no_grad():` or `@torch.inference_mode()` around the line, in its function.
bool is_without_gradients(const SourceText& text, int line);

/// The file enters a context that takes part for ranks without data (Join), or that keeps gradients
/// from being reduced (no_sync, accumulate).
bool has_unlike_steps(const SourceText& text);

}  // namespace ddpdoctor::program
