// SPDX-License-Identifier: Apache-2.0
// The decisions that send one rank to one line and another rank to a different line.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/flow/dependence.h"
#include "collector/program/flow/graph.h"
#include "collector/program/source_text.h"
#include "collector/program/syntax/bindings.h"

namespace ddpdoctor::program {

/// The graph of a scope with its control dependence, built once per text.
struct Flow {
  FlowGraph graph;
  ControlDependence dependence;

  Flow(const SourceIndex& index, const Scope& scope) : graph(index, scope), dependence(graph) {}
};

/// Valid until the text is edited or destroyed.
const Flow& flow_of(const SourceText& text, const Scope& scope);

/// One decision that two sides left in different ways.
struct Separating {
  Decision decision;
  const SourceText* text = nullptr;
  const Scope* scope = nullptr;
  Way a = Way::kNext;  // how side A left it
  Way b = Way::kNext;
  bool leads_to_a = false;  // A can be reached only this way
  bool leads_to_b = false;  // B can be reached only this way
  int distance = 0;         // number of decisions between it and the nearer line
};

/// For two lines of one scope, nearest first: decisions that choose between both lines come before
/// those that lead to one of them. Empty when the lines differ only in time.
std::vector<Separating> separating_decisions(const SourceText& text, const Scope& scope, int line_a,
                                             int line_b);

/// One frame of a side; a call string lists the user's frames, innermost first.
struct Frame {
  const SourceText* text = nullptr;  // null = the source is unknown
  std::string function;              // as the frame is named
  int line = 0;
};
using CallString = std::vector<Frame>;

/// For two call strings: decisions of the function in which they diverge, then those that lead to
/// the calls below it, on either side.
std::vector<Separating> separating_decisions(const CallString& a, const CallString& b);

/// Bindings that may change `path` ("self.cfg.stop") after the decision was left by `way` and
/// before the line was reached. Those that run after another pass through the decision do not
/// count.
std::vector<Binding> changes_between(const SourceText& text, const Scope& scope,
                                     const Decision& decision, Way way, int line,
                                     std::string_view path);

}  // namespace ddpdoctor::program
