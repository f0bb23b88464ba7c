// SPDX-License-Identifier: Apache-2.0
#include "tests/support/places.h"

namespace ddpdoctor::tests {

std::string source_file(std::string_view path) {
  return std::string(DDPDOCTOR_SOURCE_DIR "/").append(path);
}

std::string built_file(std::string_view path) {
  return std::string(DDPDOCTOR_BINARY_DIR "/").append(path);
}

}  // namespace ddpdoctor::tests
