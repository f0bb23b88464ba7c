// SPDX-License-Identifier: Apache-2.0
// The wait-for graph as a picture that stays readable: ranks that wait for the same ranks, and for
// which the same ranks wait, are one box. Every drawing of the graph is made from it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

struct WaitBox {
  model::RankSet ranks;            // empty: threads, processes, files, keys
  std::vector<std::string> nodes;  // as in the graph: "rank:0", "thread:123"
  std::string label;               // "ranks 0-2", "thread pin_memory of rank 3", "2 threads"
  bool culprit = false;            // of the first finding
};

struct WaitArrow {
  std::size_t from = 0;  // index of a box
  std::size_t to = 0;
  std::vector<std::string> why;
  bool cycle = false;  // part of a circle of arrows
};

struct WaitPicture {
  std::vector<WaitBox> boxes;
  std::vector<WaitArrow> arrows;
};

/// A launcher that waits only for its children is left out.
WaitPicture wait_picture(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
