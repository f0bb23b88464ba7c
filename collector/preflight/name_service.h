// SPDX-License-Identifier: Apache-2.0
// Resolves names as the job's libc will. A statically linked program (cmake/libraries.cmake) cannot
// load the modules that /etc/nsswitch.conf names, so it runs `getent`, which every image with glibc
// or musl contains.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ddpdoctor::preflight {

/// Numeric addresses of a name, in getaddrinfo's order.
struct Names {
  std::vector<std::string> addresses;
  bool asked = false;  // false: there is no getent here, so nothing is known
};
Names ask_getent(const std::string& name, std::chrono::milliseconds patience);

}  // namespace ddpdoctor::preflight
