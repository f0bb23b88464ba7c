// SPDX-License-Identifier: Apache-2.0
// The torch release of a process: from its Python, or from the installation of the mapped library.
#pragma once

#include <string>
#include <string_view>

#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// torch.__version__ ("2.13.0+cpu"); empty if unknown. `python` may be null.
std::string torch_version(Target& target, PythonReader* python);

/// The value of __version__ in the text of torch/version.py; empty if there is none.
std::string version_in_source(std::string_view text);

}  // namespace ddpdoctor::stacks
