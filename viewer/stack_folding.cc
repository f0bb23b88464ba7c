// SPDX-License-Identifier: Apache-2.0
// Folding works on paths: every leaf of the tree is a set of ranks with the same frames, so a
// leaf's path is folded like a single thread and the folded paths are merged again. Ranks that
// differ only inside torch end on one line; if a training framework separates them, its frames are
// shown.
#include "viewer/stack_folding.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::viewer {

namespace {

using model::Frame;
using model::Language;
using Path = std::vector<const Frame*>;  // outermost first

// Python functions between the user's call and the function it means: decorators and
// nn.Module's dispatch.
constexpr std::array<std::string_view, 13> kWrappers{"wrapper",
                                                     "wrapped",
                                                     "inner",
                                                     "decorate_context",
                                                     "_wrapped_call_impl",
                                                     "_call_impl",
                                                     "__call__",
                                                     "<lambda>",
                                                     "_fn",
                                                     "decorated",
                                                     "wrap",
                                                     "new_func",
                                                     "apply"};

// Deeper than any readable tree; a hostile capture must not exhaust our stack.
constexpr std::size_t kDeepest = 4000;

std::string_view last_part(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == std::string_view::npos ? qualified : qualified.substr(dot + 1);
}

bool is_user(const Frame& frame) {
  return frame.language == Language::kPython && model::is_user_file(frame.file);
}

bool is_telling(const Frame& frame) {
  return !frame.function.empty() && !is_wrapper(frame.function);
}

std::string function_name(const Frame& frame) {
  // "Trainer.fit.<locals>.step" is named "step" in the source; "Trainer.fit" keeps its class.
  constexpr std::string_view kLocals = "<locals>.";
  std::string_view name = frame.function;
  if (const std::size_t at = name.rfind(kLocals); at != std::string_view::npos) {
    name.remove_prefix(at + kLocals.size());
  }
  return base::printable(name.empty() ? std::string_view("?") : name);
}

/// One name for everything from `begin` on: Python before native, informative names before
/// wrappers.
std::string library_label(const Path& path, std::size_t begin) {
  const auto from = path.begin() + static_cast<std::ptrdiff_t>(begin);
  auto chosen =
      std::find_if(from, path.end(), [](const Frame* frame) { return is_telling(*frame); });
  if (chosen == path.end()) {
    chosen = from;
  }
  return function_name(**chosen) + (chosen + 1 == path.end() ? "" : " …");
}

/// Native frames alone: the outermost call of MPI, the function that waits, and what it waits in.
std::vector<std::string> native_labels(const Path& path, const FileNames& names) {
  std::vector<std::string> out;
  const auto innermost = std::find_if(path.rbegin(), path.rend(),
                                      [](const Frame* frame) { return !frame->function.empty(); });
  const auto mpi = std::find_if(path.begin(), path.end(), [](const Frame* frame) {
    return model::is_mpi_function(frame->function);
  });
  const auto telling = std::find_if(path.rbegin(), path.rend(),
                                    [](const Frame* frame) { return model::says_why(*frame); });
  if (mpi != path.end()) {
    out.push_back(frame_label(**mpi, names));
  } else if (telling != path.rend() && !model::is_interpreter_code(**telling)) {
    out.push_back(frame_label(**telling, names));
  }
  if (innermost != path.rend() && (out.empty() || frame_label(**innermost, names) != out.back())) {
    out.push_back(frame_label(**innermost, names));
  }
  return out;
}

/// A stack without a user line: the innermost Python frame, else native frames with a name.
std::vector<std::string> foreign_labels(const Path& path, const FileNames& names) {
  const auto python = std::find_if(path.rbegin(), path.rend(), [](const Frame* frame) {
    return frame->language == Language::kPython && is_telling(*frame);
  });
  if (python != path.rend()) {
    const auto below = static_cast<std::size_t>(path.rend() - python);
    std::vector<std::string> out{frame_label(**python, names)};
    if (below < path.size()) {
      out.push_back(library_label(path, below));
    }
    return out;
  }
  if (auto native = native_labels(path, names); !native.empty()) {
    return native;
  }
  return {path.empty() ? std::string("no stack") : frame_label(*path.back(), names)};
}

/// Part of a library other than torch and Python's own: a trainer that calls the user's hooks.
bool is_framework(const Frame& frame) {
  return frame.language == Language::kPython && !is_user(frame) &&
         frame.file.find("-packages/") != std::string::npos &&
         frame.file.find("/torch/") == std::string::npos;
}

/// `forks`: where in the path ranks diverge inside a framework, outermost first.
std::vector<std::string> labels(const Path& path, const FileNames& names,
                                const std::vector<std::size_t>& forks = {}) {
  const auto last_user =
      std::find_if(path.rbegin(), path.rend(), [](const Frame* frame) { return is_user(*frame); });
  if (last_user == path.rend()) {
    return foreign_labels(path, names);
  }
  const auto below = static_cast<std::size_t>(path.rend() - last_user);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < below; ++i) {
    // A script's top level is omitted if it called something.
    const bool top_level = path[i]->function == "<module>" && i + 1 < below;
    if (is_user(*path[i]) && !top_level) {
      out.push_back(frame_label(*path[i], names));
    }
  }
  const auto fork = std::lower_bound(forks.begin(), forks.end(), below);
  const std::size_t rest = fork == forks.end() ? below : *fork + 1;
  if (fork != forks.end()) {
    out.push_back(frame_label(*path[*fork], names));
  }
  if (rest < path.size()) {
    out.push_back(library_label(path, rest));
  }
  return out;
}

void add(std::vector<FoldedNode>& nodes, const std::vector<std::string>& labels,
         const model::RankSet& ranks) {
  std::vector<FoldedNode>* level = &nodes;
  for (const std::string& label : labels) {
    auto node = std::find_if(level->begin(), level->end(),
                             [&label](const FoldedNode& known) { return known.label == label; });
    if (node == level->end()) {
      level->push_back({.label = label, .ranks = {}, .children = {}});
      node = level->end() - 1;
    }
    node->ranks = node->ranks.united(ranks);
    level = &node->children;
  }
}

/// Ranks whose stack ends at this node.
model::RankSet ending_here(const diagnosis::StackNode& node) {
  model::RankSet ranks = node.ranks;
  for (const diagnosis::StackNode& child : node.children) {
    ranks = ranks.minus(child.ranks);
  }
  return ranks;
}

bool parts_in_framework(const diagnosis::StackNode& node) {
  return std::count_if(node.children.begin(), node.children.end(),
                       [](const auto& child) { return is_framework(child.frame); }) > 1;
}

/// The path from a root to the current node.
struct Way {
  Path path;
  std::vector<std::size_t> forks;  // in the form that `labels` needs
};

// NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepest
void walk(const diagnosis::StackNode& node, Way& way, const FileNames& names,
          std::vector<FoldedNode>& out) {
  Path& path = way.path;
  path.push_back(&node.frame);
  const bool leaf = node.children.empty() || path.size() >= kDeepest;
  const model::RankSet ending = leaf ? node.ranks : ending_here(node);
  if (!ending.empty()) {
    add(out, labels(path, names, way.forks), ending);
  }
  if (!leaf) {
    const bool parts = parts_in_framework(node);
    if (parts) {
      way.forks.push_back(path.size());
    }
    for (const diagnosis::StackNode& child : node.children) {
      walk(child, way, names, out);
    }
    if (parts) {
      way.forks.pop_back();
    }
  }
  path.pop_back();
}

// NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepest
void sort_outliers_first(std::vector<FoldedNode>& nodes, const model::RankSet& culprits) {
  const auto blamed = [&culprits](const FoldedNode& node) {
    return !node.ranks.common(culprits).empty();
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&blamed](const FoldedNode& a, const FoldedNode& b) {
    if (blamed(a) != blamed(b)) {
      return blamed(a);
    }
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() < b.ranks.size() : a.ranks < b.ranks;
  });
  for (FoldedNode& node : nodes) {
    sort_outliers_first(node.children, culprits);
  }
}

}  // namespace

bool is_wrapper(std::string_view function) {
  return std::find(kWrappers.begin(), kWrappers.end(), last_part(function)) != kWrappers.end();
}

std::string frame_label(const Frame& frame, const FileNames& names) {
  if (frame.language == Language::kPython) {
    return fmt::format("{} {}", function_name(frame), names.place(frame.file, frame.line));
  }
  if (!frame.file.empty()) {
    return fmt::format("{} {}", function_name(frame), names.place(frame.file, frame.line));
  }
  return frame.module.empty() ? function_name(frame)
                              : fmt::format("{} [{}]", function_name(frame),
                                            base::printable(base::file_name(frame.module)));
}

std::vector<FoldedNode> folded(const diagnosis::StackDiff& stacks, const FileNames& names,
                               const model::RankSet& culprits) {
  std::vector<FoldedNode> nodes;
  Way way;
  for (const diagnosis::StackNode& root : stacks.roots) {
    walk(root, way, names, nodes);
  }
  sort_outliers_first(nodes, culprits);
  return nodes;
}

std::vector<std::string> folded(const model::Thread& thread, const FileNames& names) {
  Path path;
  for (auto frame = thread.frames.rbegin(); frame != thread.frames.rend(); ++frame) {
    path.push_back(&*frame);
  }
  return labels(path, names);
}

}  // namespace ddpdoctor::viewer
