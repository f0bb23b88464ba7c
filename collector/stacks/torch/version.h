// SPDX-License-Identifier: Apache-2.0
// Which torch a process runs: from its Python, or from the installation beside the mapped library.
#pragma once

#include <string>
#include <string_view>

#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// torch.__version__ ("2.13.0+cpu"); empty when it cannot be told. `python` may be null.
std::string torch_version(Target& target, PythonReader* python);

/// The value of __version__ in the text of torch/version.py; empty when there is none.
std::string version_in_source(std::string_view text);

}  // namespace ddpdoctor::stacks
