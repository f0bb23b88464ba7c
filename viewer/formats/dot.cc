// SPDX-License-Identifier: Apache-2.0
// The wait-for graph as Graphviz DOT.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "viewer/render.h"
#include "viewer/wait_picture.h"

namespace ddpdoctor::viewer {

namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char each : base::printable(text)) {
    if (each == '"' || each == '\\') {
      out += '\\';
    }
    out += each;
  }
  return out + '"';
}

std::string box_line(const WaitBox& box) {
  return fmt::format("  {} [label={}{}];\n", in_quotes(box.nodes.front()), in_quotes(box.label),
                     box.culprit ? ", style=filled, fillcolor=salmon" : "");
}

std::string arrow_line(const WaitPicture& picture, const WaitArrow& arrow) {
  return fmt::format("  {} -> {} [label={}{}];\n",
                     in_quotes(picture.boxes[arrow.from].nodes.front()),
                     in_quotes(picture.boxes[arrow.to].nodes.front()),
                     in_quotes(fmt::format("{}", fmt::join(arrow.why, "; "))),
                     arrow.cycle ? ", color=red, penwidth=2" : "");
}

}  // namespace

std::string dot(const diagnosis::Diagnosis& diagnosis) {
  const WaitPicture picture = wait_picture(diagnosis);
  std::string out = "digraph wait_for {\n  rankdir=LR;\n  node [shape=box];\n";
  if (!diagnosis.findings.empty()) {
    out += fmt::format("  label={};\n", in_quotes(diagnosis.findings.front().summary));
  }
  for (const WaitBox& box : picture.boxes) {
    out += box_line(box);
  }
  for (const WaitArrow& arrow : picture.arrows) {
    out += arrow_line(picture, arrow);
  }
  return out + "}\n";
}

}  // namespace ddpdoctor::viewer
