// SPDX-License-Identifier: Apache-2.0
// The condition that leaves parameters without a gradient, by their names.
#include "collector/detectors/partings/unused_branch.h"

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// The line for these names in a model of two towers, whose photo tower has `body` in its forward.
std::optional<int> line_for(const std::vector<std::string>& names, const std::string& body) {
  const model::JobModel model =
      job()
          .ranks(2)
          .source(
              "/srv/net.py",
              "class Photos(nn.Module):\n    def __init__(self, conf):\n        if conf.deep:\n"
              "            self.encode = nn.Linear(4, 4)\n    def forward(self, text, photos):\n" +
                  body +
                  "class Net(nn.Module):\n    def forward(self, text, photos, labels):\n"
                  "        out = self.head(self.photos(text, photos))\n"
                  "        if labels is None:\n            return out\n"
                  "        if out.sum() > 9:\n            out = self.scale(out)\n"
                  "        return out\n")
          .build();
  const auto found = branch_around_parameters(model, names);
  return found ? std::optional(found->line) : std::nullopt;
}

const std::string kEarly =
    "        rows = photos.nonzero()\n        if rows.numel() == 0:\n            return text\n"
    "        return text + self.encode(photos[rows])\n";

TEST(UnusedBranch, IsTheOneAroundTheModuleThatHasNoGradient) {
  const std::vector<std::string> names = {"photos.encode.0.bias", "photos.encode.0.weight"};
  EXPECT_EQ(line_for(names, kEarly), 7);
  EXPECT_EQ(line_for(names,
                     "        if photos.any():\n            text = self.encode(photos)\n"
                     "        return text\n"),
            6);
}

TEST(UnusedBranch, IsNotThatOfAnotherModule) {
  EXPECT_EQ(line_for({"scale.weight"}, kEarly), 15);
  EXPECT_EQ(line_for({"head.weight"}, kEarly), std::nullopt);
  EXPECT_EQ(line_for({}, kEarly), std::nullopt);
}

TEST(UnusedBranch, IsNoConditionThatOnlyRaises) {
  EXPECT_EQ(line_for({"photos.encode.bias"},
                     "        if photos.sum() < 0:\n            raise ValueError(photos)\n"
                     "        return text + self.encode(photos)\n"),
            std::nullopt);
}

}  // namespace
}  // namespace ddpdoctor::detectors
