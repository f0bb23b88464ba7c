// SPDX-License-Identifier: Apache-2.0
// The modules of Python's standard library by the short paths that py-spy prints.
#pragma once

#include <string_view>

namespace ddpdoctor::model {

/// "weakref.py" and "concurrent/futures/_base.py", which are relative to a folder of sys.path. A
/// program whose own file had such a name would hide the module from all libraries.
bool is_of_standard_library(std::string_view path);

}  // namespace ddpdoctor::model
