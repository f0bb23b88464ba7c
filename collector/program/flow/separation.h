// SPDX-License-Identifier: Apache-2.0
// Which decisions send one rank to one line and another rank to another line.
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

/// The graph of a scope with its control dependence; made once for a text.
struct Flow {
  FlowGraph graph;
  ControlDependence dependence;

  Flow(const SourceIndex& index, const Scope& scope) : graph(index, scope), dependence(graph) {}
};

/// Valid as long as the text is neither edited nor gone.
const Flow& flow_of(const SourceText& text, const Scope& scope);

/// One decision that two sides left by different ways.
struct Separating {
  Decision decision;
  const SourceText* text = nullptr;
  const Scope* scope = nullptr;
  Way a = Way::kNext;  // how the side at A left it
  Way b = Way::kNext;
  bool leads_to_a = false;  // A is reached only this way
  bool leads_to_b = false;  // B is
  int distance = 0;         // decisions between it and the nearer of the two lines
};

/// Of two lines of one scope, the nearest first; decisions that lead to one side only follow those
/// that choose between both. Empty for lines that differ in time only.
std::vector<Separating> separating_decisions(const SourceText& text, const Scope& scope, int line_a,
                                             int line_b);

/// Where a side is: the user's frames, innermost first.
struct Frame {
  const SourceText* text = nullptr;  // absent: no source is known
  std::string function;              // as the frame is named
  int line = 0;
};
using CallString = std::vector<Frame>;

/// Along two call strings: decisions of the function in which they diverge, then those that lead to
/// the calls below it, on either side.
std::vector<Separating> separating_decisions(const CallString& a, const CallString& b);

/// Bindings that may change `path` ("self.cfg.stop") after the decision was left by `way` and
/// before the line was reached; what lies behind the same decision again does not count.
std::vector<Binding> changes_between(const SourceText& text, const Scope& scope,
                                     const Decision& decision, Way way, int line,
                                     std::string_view path);

}  // namespace ddpdoctor::program
