// SPDX-License-Identifier: Apache-2.0
// The wait-for graph as a readable picture: ranks with the same targets and the same waiters form
// one box. All drawings of the graph use it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

struct WaitBox {
  model::RankSet ranks;            // empty: a box of threads, processes, files or keys
  std::vector<std::string> nodes;  // as in the graph: "rank:0", "thread:123"
  std::string label;               // "ranks 0-2", "thread pin_memory of rank 3", "2 threads"
  bool culprit = false;            // of the first finding
};

struct WaitArrow {
  std::size_t from = 0;  // index of a box
  std::size_t to = 0;
  std::vector<std::string> why;
  bool cycle = false;  // part of a cycle
};

struct WaitPicture {
  std::vector<WaitBox> boxes;
  std::vector<WaitArrow> arrows;
};

/// Omits a launcher that waits only for its children.
WaitPicture wait_picture(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
