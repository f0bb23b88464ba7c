// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kPossible:
      return "possible";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kCertain:
      return "certain";
  }
  return "possible";
}

}  // namespace ddpdoctor::detectors
