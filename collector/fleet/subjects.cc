// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/subjects.h"

#include "base/text.h"

namespace ddpdoctor::fleet {

std::string_view word_of(std::string_view subject, std::size_t index) {
  const auto words = base::split(subject, '.');
  return index < words.size() ? words[index] : std::string_view();
}

}  // namespace ddpdoctor::fleet
