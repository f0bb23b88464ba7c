// SPDX-License-Identifier: Apache-2.0
// What this program settles of its own process before it does anything.
#pragma once

#include <string>
#include <vector>

namespace ddpdoctor::cli {

/// A write that meets a closed pipe or a size limit fails instead of ending us, and a statically
/// linked program looks names up by itself.
void prepare_own_process();

/// The words of the command line; those of a link named py-spy begin with `pyspy`.
std::vector<std::string> words_of(int argc, char** argv);

}  // namespace ddpdoctor::cli
