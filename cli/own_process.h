// SPDX-License-Identifier: Apache-2.0
// Settings of this program's own process before it does anything else.
#pragma once

#include <string>
#include <vector>

namespace ddpdoctor::cli {

/// A write to a closed pipe or beyond a size limit fails instead of ending the process, and a
/// statically linked program resolves names by itself.
void prepare_own_process();

/// The words of the command line; for a link named py-spy they begin with `pyspy`.
std::vector<std::string> words_of(int argc, char** argv);

}  // namespace ddpdoctor::cli
