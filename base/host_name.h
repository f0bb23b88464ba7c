// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ddpdoctor::base {

/// This machine's name; empty when the kernel does not tell. Asks nobody else.
std::string host_name();

}  // namespace ddpdoctor::base
