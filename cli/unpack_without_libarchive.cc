// SPDX-License-Identifier: Apache-2.0
#include "cli/unpack.h"
#include "cli/unpacked_inputs.h"

namespace ddpdoctor::cli {

bool can_unpack() {
  return false;
}

base::Result<Unpacked> unpack(const std::string&, const std::string&, const UnpackBounds&) {
  return base::failure("this build has no libarchive");
}

}  // namespace ddpdoctor::cli
