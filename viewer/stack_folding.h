// SPDX-License-Identifier: Apache-2.0
// The stack tree for people: the user's frames, and one name for the libraries below them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/diagnosis/stack_diff.h"
#include "viewer/file_names.h"

namespace ddpdoctor::viewer {

/// A position shared by `ranks`: "fit train.py:97", or "barrier …" for everything below a call into
/// a library.
struct FoldedNode {
  std::string label;
  model::RankSet ranks;
  std::vector<FoldedNode> children;  // culprits first, then outliers
};

/// Library frames above and between the user's frames are omitted; those below become the first
/// informative name, after the frame at which a training framework separates ranks.
std::vector<FoldedNode> folded(const diagnosis::StackDiff& stacks, const FileNames& names,
                               const model::RankSet& culprits);

/// The same for one thread, outermost first; a thread without user frames gives its innermost
/// informative frames.
std::vector<std::string> folded(const model::Thread& thread, const FileNames& names);

/// True if this Python function is only between a call and its target (a decorator, nn.Module's
/// dispatch).
bool is_wrapper(std::string_view function);

/// "evaluate train.py:61", "epoll_wait [libc.so.6]".
std::string frame_label(const model::Frame& frame, const FileNames& names);

}  // namespace ddpdoctor::viewer
