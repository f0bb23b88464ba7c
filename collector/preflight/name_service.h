// SPDX-License-Identifier: Apache-2.0
// Names as the job's own libc will find them. A program that is linked statically
// (cmake/libraries.cmake) cannot load the modules that /etc/nsswitch.conf names, so it asks
// `getent`, which every image with glibc or musl has.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ddpdoctor::preflight {

/// Numeric addresses of a name, in the order in which getaddrinfo gives them.
struct Names {
  std::vector<std::string> addresses;
  bool asked = false;  // false: there is no getent here, nothing is known
};
Names ask_getent(const std::string& name, std::chrono::milliseconds patience);

}  // namespace ddpdoctor::preflight
