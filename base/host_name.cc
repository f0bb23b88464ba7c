// SPDX-License-Identifier: Apache-2.0
#include "base/host_name.h"

#include <array>
#include <unistd.h>

namespace ddpdoctor::base {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "";
}

}  // namespace ddpdoctor::base
