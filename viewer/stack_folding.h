// SPDX-License-Identifier: Apache-2.0
// The stack tree as a person reads it: the user's frames, and of the libraries below them one name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/diagnosis/stack_diff.h"
#include "viewer/file_names.h"

namespace ddpdoctor::viewer {

/// A place shared by `ranks`: "fit train.py:97", or "barrier …" for everything below a call into a
/// library.
struct FoldedNode {
  std::string label;
  model::RankSet ranks;
  std::vector<FoldedNode> children;  // culprits first, then outliers
};

/// Frames of libraries above and between the user's frames vanish; those below become the first
/// that has a telling name, after the frame at which a training framework leads ranks apart.
std::vector<FoldedNode> folded(const diagnosis::StackDiff& stacks, const FileNames& names,
                               const model::RankSet& culprits);

/// The same for one thread, outermost first; a thread without user frames gives its innermost
/// telling frames.
std::vector<std::string> folded(const model::Thread& thread, const FileNames& names);

/// Does this Python function only stand between a call and the function it means (a decorator,
/// nn.Module's dispatch)?
bool is_wrapper(std::string_view function);

/// "evaluate train.py:61", "epoll_wait [libc.so.6]".
std::string frame_label(const model::Frame& frame, const FileNames& names);

}  // namespace ddpdoctor::viewer
