// SPDX-License-Identifier: Apache-2.0
#include "collector/values/loop_reader.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/values/from_syntax.h"

namespace ddpdoctor::values {

namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;
using program::Decision;

/// How far the one loop of a generator has come: it may have given out more or fewer items.
std::string text_in_generator(const stacks::Iteration& loop) {
  constexpr std::string_view kGenerator = "generator ";
  if (!loop.over.starts_with(kGenerator)) {
    return {};
  }
  const std::string name = loop.over.substr(
      loop.over.rfind('.') == std::string::npos ? kGenerator.size() : loop.over.rfind('.') + 1);
  if (!loop.done) {
    return loop.left ? fmt::format("{}() with {} to come", name, *loop.left) : std::string();
  }
  return loop.left ? fmt::format("{}() in iteration {}, {} to come", name, *loop.done, *loop.left)
                   : fmt::format("{}() in iteration {}", name, *loop.done);
}

std::string text_of(const stacks::Iteration& loop) {
  if (loop.loose) {
    return text_in_generator(loop);
  }
  if (const auto total = loop.total()) {
    return fmt::format("iteration {} of {}", *loop.done, *total);
  }
  return loop.done   ? fmt::format("iteration {}", *loop.done)
         : loop.left ? fmt::format("{} to come", *loop.left)
                     : std::string();
}

}  // namespace

void LoopReader::add(const In& frame, const std::vector<Decision>& decisions) {
  std::vector<const Decision*> entered;
  for (const Decision& decision : decisions) {
    if (decision.kind == program::DecisionKind::kFor && frame.way.is_in(decision)) {
      entered.push_back(&decision);
    } else if (decision.kind == program::DecisionKind::kFor && frame.way.is_behind(decision)) {
      const auto items = has_break(decision.owner) ? std::nullopt : items_of(frame, decision);
      add_one(frame.where, decision, items ? fmt::format("ended, of {} in all", *items) : "ended",
              items);
    }
  }
  for (std::size_t i = 0; i < entered.size(); ++i) {
    stacks::Iteration over =
        entered.size() == frame.iterations.size() ? frame.iterations[i] : stacks::Iteration{};
    const bool whole = !over.loose && over.total();
    const auto items = whole ? over.total() : items_of(frame, *entered[i]);
    // A generator with a known number of items yields once in each iteration of its loop.
    if (items && over.left && *items >= *over.left &&
        (!over.done || *over.done + *over.left == *items)) {
      over.done = *items - *over.left;
      over.loose = false;
    }
    add_one(frame.where, *entered[i], text_of(over), items);
  }
}

void LoopReader::add_comprehension(const stacks::Frame& frame, const program::SourceIndex& index) {
  const auto clauses = program::comprehension_at(index, frame.line);
  for (std::size_t i = 0; i < clauses.size() && frame.loops.size() == clauses.size(); ++i) {
    add_one({.file = frame.file, .function = frame.function, .at = frame.line}, clauses[i],
            text_of(frame.loops[i]));
  }
}

void LoopReader::add_length(const Whereabouts& where, const Decision& loop, const Since& since,
                            Names& names) {
  const auto items = items_.of(expression_of(loop.condition), names);
  if (!items) {
    return;
  }
  add_one(where, loop, model::said_length(*items), items);
  if (since.freshness != Freshness::kFresh) {
    out_.back().state = ValueState::kStale;
    out_.back().reason = since.freshness == Freshness::kStale ? since.reason : kNotAgain;
  }
}

void LoopReader::add_one(const Whereabouts& where, const Decision& loop, const std::string& text,
                         std::optional<std::int64_t> items) {
  SeenValue seen = DecisionReader::made(ValueRole::kLoop, where, loop.line, loop.text);
  seen.value = text;
  seen.items = items;
  seen.state = text.empty() ? ValueState::kUnknown : ValueState::kKnown;
  seen.reason = text.empty() ? "its iterator does not say how far it is" : "";
  out_.push_back(std::move(seen));
}

/// The number of items of a loop, from the current values in its header; nothing if these may have
/// changed since the loop began.
std::optional<std::int64_t> LoopReader::items_of(const In& frame, const Decision& loop) {
  if (frame.way.since(loop).freshness != Freshness::kFresh) {
    return std::nullopt;
  }
  stacks::Scope scope = frame.scope;
  Names names{.scope = &scope};
  const auto items = items_.of(expression_of(loop.condition), names);
  const bool fresh = frame.way.since(loop, items_.read()).freshness == Freshness::kFresh;
  return fresh ? items : std::nullopt;
}

}  // namespace ddpdoctor::values
