// SPDX-License-Identifier: Apache-2.0
// Requirements on every detector.
#include <string_view>

#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/detectors/detector.h"

namespace ddpdoctor::detectors {
namespace {

bool shows_a_change(std::string_view text) {
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string_view code = base::trim(line);
    if (line.starts_with("    ") &&
        (code.starts_with("- ") || code.starts_with("+ ") || code.starts_with("$ "))) {
      return true;
    }
  }
  return false;
}

TEST(Catalog, EveryPageSaysWhatIsSeenWhyHowItIsRecognisedAndTheFix) {
  for (const Detector* detector : catalog()) {
    const std::string_view page = detector->explanation;
    std::size_t at = 0;
    for (const std::string_view part : {"What you see:", "Why", "How ddpdoctor knows:"}) {
      at = page.find(part, at);
      ASSERT_NE(at, std::string_view::npos) << detector->kind << ": no \"" << part << "\"";
    }
    const std::size_t fix = std::min(page.find("\nFix:", at), page.find("\nThe fix", at));
    ASSERT_NE(fix, std::string_view::npos) << detector->kind << ": no fix";
    EXPECT_TRUE(shows_a_change(page.substr(fix))) << detector->kind << ": the fix shows no change";
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
