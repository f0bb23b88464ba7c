// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ddpdoctor::base {

/// This machine's name from the kernel, without a lookup; empty when the kernel does not report it.
std::string host_name();

}  // namespace ddpdoctor::base
