// SPDX-License-Identifier: Apache-2.0
// How the contexts of libraries around a line, and their calls in a file, change gradients and
// steps.
#pragma once

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// True inside `with torch.no_grad():` or a function with `@torch.inference_mode()`.
bool is_without_gradients(const SourceText& text, int line);

/// The file enters a context that takes part for ranks without data (Join), or that delays the
/// reduction of gradients (no_sync, accumulate).
bool has_unlike_steps(const SourceText& text);

}  // namespace ddpdoctor::program
