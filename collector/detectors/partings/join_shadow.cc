// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/join_shadow.h"

#include <algorithm>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

bool is_shadow(const Side& side) {
  return side.standing != nullptr && side.standing->thread != nullptr &&
         model::has_python_frame(*side.standing->thread, "__exit__",
                                 "torch/distributed/algorithms/join.py");
}

/// Neither in backward nor in the forward of a wrapped module, which are the calls that Join
/// shadows.
bool makes_a_call_of_its_own(const Side& side) {
  return side.calls() && !is_shadow(side) && side.activity() == Activity::kCollective;
}

/// The innermost loop around `line` inside the `with` at `join`.
const Block* loop_in(const std::vector<Block>& around, int join) {
  const Block* loop = nullptr;
  for (const Block& block : around) {
    if (block.kind == BlockKind::kWith && block.line == join) {
      return loop;
    }
    loop = loop == nullptr && is_loop(block) ? &block : loop;
  }
  return nullptr;
}

}  // namespace

bool read_join(const graph::Examination& examination, Explanation& explanation) {
  if (!explanation.fork || explanation.parting.shifted) {
    return false;
  }
  const bool odd = is_shadow(explanation.parting.odd);
  const bool rest = is_shadow(explanation.parting.rest);
  const Side& caller = odd ? explanation.parting.rest : explanation.parting.odd;
  const model::CallSite& in = odd ? explanation.fork->theirs : explanation.fork->ours;
  const model::CallSite& join = odd ? explanation.fork->ours : explanation.fork->theirs;
  if (odd == rest || !makes_a_call_of_its_own(caller)) {
    return false;
  }
  const Lines& lines = lines_of(examination.job, in.file);
  const std::vector<Block> around = program::enclosing(lines, in.line);
  const Block* loop = loop_in(around, join.line);
  if (loop == nullptr || join.file != in.file) {
    return false;
  }
  explanation.loop =
      LeftLoop{.where = {.file = in.file, .line = loop->line, .function = in.function},
               .header = loop->text,
               .shadowed = true,
               .way_out = std::nullopt};
  if (!odd) {
    explanation.loop->ours_left = false;
    explanation.turn();
  }
  explanation.cause = Cause::kUneven;
  return true;
}

}  // namespace ddpdoctor::detectors
