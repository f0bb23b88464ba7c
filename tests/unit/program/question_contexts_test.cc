// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/contexts.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

bool is_free(const char* source) {
  const Lines lines = lines_of(source);
  return is_without_gradients(lines, line_with(lines, "HERE"));
}

TEST(Contexts, FreeOfGradientsAreBlocksAndDecorators) {
  EXPECT_TRUE(is_free("with torch.no_grad():\n  f()  # HERE\n"));
  EXPECT_TRUE(is_free("@inference_mode()\ndef g():\n  f()  # HERE\n"));
  EXPECT_TRUE(is_free("@torch.no_grad\ndef g():\n  f()  # HERE\n"));
  EXPECT_FALSE(is_free("def evaluate():\n  f()  # HERE, no_grad()\n"));
  EXPECT_FALSE(is_free("with torch.no_grad():\n  g()\nf()  # HERE\n"));
}

TEST(Contexts, UnlikeStepsAreJoinAndWhatHoldsGradients) {
  EXPECT_TRUE(has_unlike_steps(lines_of("with self.net.no_sync():\n  f()\n")));
  EXPECT_TRUE(has_unlike_steps(lines_of("with Join([net]):\n  f()\n")));
  EXPECT_TRUE(has_unlike_steps(lines_of("with a.accumulate(net):\n  f()\n")));
  EXPECT_TRUE(has_unlike_steps(lines_of("with net.join():\n  f()\n")));
  EXPECT_TRUE(has_unlike_steps(lines_of("stack.enter_context(net.join())\n")));
  EXPECT_FALSE(has_unlike_steps(lines_of("with open(os.path) as f:\n  path = os.path.join(a)\n")));
  EXPECT_FALSE(has_unlike_steps(lines_of("path = os.path.join(a)\nthread.join()\n")));
  EXPECT_FALSE(has_unlike_steps(lines_of("# Join, no_sync()\naccumulation = 4\n")));
}

}  // namespace
}  // namespace ddpdoctor::program
