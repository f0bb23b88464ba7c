// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/unseen_weights.h"

#include "collector/detectors/partings/rank_values.h"
#include "collector/model/questions.h"
#include "collector/program/origin/items.h"
#include "collector/program/questions/contexts.h"
#include "collector/program/questions/deciding.h"

namespace ddpdoctor::detectors {
namespace {

using program::Choice;
using program::Decision;
using program::DecisionKind;

bool goes_over(DecisionKind kind) {
  return kind == DecisionKind::kFor || kind == DecisionKind::kIterate;
}

/// Not computed from batches: a loop may be over them for as long as they are equal in number.
bool is_own_state(program::Source source) {
  return source >= program::Source::kException && source != program::Source::kRank;
}

}  // namespace

bool Weights::weigh(const Choice& choice, const FunctionRun& run, const Passing& passing,
                    Candidate& one) const {
  const bool of_stack = passing.of_stack;
  const Decision& decision = choice.decision;
  if (one.ends_loop) {
    one.speaks = Speaks::kOwnBatches;
    one.source = program::Source::kData;
    return true;
  }
  if (decision.kind == DecisionKind::kExcept) {
    one.speaks = Speaks::kException;
    one.source = program::Source::kException;
    return true;
  }
  const RankValues read = rank_values(job_, one.where, goes_over(decision.kind), ranks_);
  // No earlier decision had another result.
  const bool final = of_stack && choice.once && !run.again;
  if (read.known && !read.differs() && final) {
    return false;
  }
  const program::Origin origin = origin_of(decision, run);
  one.source = origin.source;
  if (goes_over(decision.kind)) {
    if (program::has_unlike_steps(*run.file->text)) {
      return false;  // Join, no_sync(): made for ranks with different numbers of steps
    }
    one.of_batches = is_over_batches(choice, run, passing.first_call);
    if (!read.differs()) {
      return weigh_loop(choice, run, origin, of_stack, one);
    }
  }
  if (origin.source == program::Source::kUniform && !(goes_over(decision.kind) && origin.object)) {
    return false;  // a counter: hosts that ran ahead are at different steps
  }
  // Values are current ones: for an earlier iteration, or a function that has returned, only what
  // is equal in every iteration is evidence.
  const bool as_then = goes_over(decision.kind) || origin.source == program::Source::kRank ||
                       origin.source == program::Source::kEnvironment ||
                       (of_stack && ((choice.once && !run.again) || are_at_one_step(job_)));
  if (read.differs() && as_then) {
    // "True" sorts before "False" by length
    one.differ = read.odd(goes_over(decision.kind) ? one.of_batches : one.inside);
    one.speaks = Speaks::kValues;
    return true;
  }
  if (origin.source == program::Source::kException && !origin.chain.empty()) {
    const program::OriginStep& last = origin.chain.back();
    one.handler = {
        .file = last.file.empty() ? one.where.file : last.file, .line = last.line, .function = {}};
  }
  // Whether there is a value, every n-th time: equal, unless its source never is.
  const bool option = origin.like_an_option && origin.source < program::Source::kQueue;
  one.speaks = origin.source == program::Source::kRank     ? Speaks::kRank
               : program::is_own(origin.source) && !option ? Speaks::kOwn
                                                           : Speaks::kNothingElse;
  return one.speaks != Speaks::kNothingElse || origin.source == program::Source::kEnvironment ||
         origin.source == program::Source::kData;
}

bool Weights::is_over_batches(const Choice& choice, const FunctionRun& run, int first_call) const {
  const program::SourceText& text = *run.file->text;
  const int loop = choice.decision.line;
  if (choice.decision.kind != DecisionKind::kFor) {
    return false;
  }
  const program::Node over = choice.decision.condition;
  if (over.is(program::NodeKind::kCall) &&
      over.field(program::Field::kFunction).text() == "sorted") {
    return false;  // items with an order are not batches
  }
  const program::Items items = program::items_of(text, loop, job_.sources);
  return items == program::Items::kBatches ||
         (items == program::Items::kUnknown &&
          !program::reduces_each(text, loop, first_call, job_.sources));
}

bool Weights::rests_on_rank(const program::Origin& origin, const FunctionRun& run) const {
  if (origin.source == program::Source::kRank || origin.chain.empty()) {
    return origin.source == program::Source::kRank;
  }
  const program::OriginStep& last = origin.chain.back();
  const auto source = job_.sources.find(last.file);
  const program::SourceText& text = source == job_.sources.end() ? *run.file->text : source->second;
  return program::origin_of(last.text, {.text = &text, .line = last.line}, job_.sources).source ==
         program::Source::kRank;
}

bool Weights::weigh_loop(const Choice& choice, const FunctionRun& run,
                         const program::Origin& origin, bool of_stack, Candidate& one) const {
  if (origin.source == program::Source::kUniform && !origin.object) {
    return false;
  }
  const bool own = origin.source == program::Source::kRank || program::is_own(origin.source);
  if (!one.of_batches && own) {
    one.speaks = origin.source == program::Source::kRank ? Speaks::kRank : Speaks::kOwn;
    return true;
  }
  // A loop over batches that all ranks are in has ended for some only if it is begun again.
  const bool again = !choice.once || run.again;
  const bool begun_again = again && (rests_on_rank(origin, run) || is_own_state(origin.source));
  one.speaks = Speaks::kOwnBatches;
  return !of_stack || !choice.led_here || begun_again;
}

program::Origin Weights::origin_of(const Decision& decision, const FunctionRun& run) const {
  program::CallString frames;
  for (const model::CallSite& site : run.callers) {
    const auto source = job_.sources.find(site.file);
    frames.push_back({.text = source == job_.sources.end() ? nullptr : &source->second,
                      .function = site.function,
                      .line = site.line});
  }
  return program::origin_of(
      decision.text,
      {.text = run.file->text, .line = decision.condition.line(), .callers = &frames},
      job_.sources);
}

}  // namespace ddpdoctor::detectors
