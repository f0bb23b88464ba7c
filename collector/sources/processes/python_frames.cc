// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/python_frames.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

/// An absolute path anywhere in a value's text: "<FileBaton lock_file_path='/x/lock'>".
std::string path_within(std::string_view text) {
  std::size_t begin = text.find('/');
  while (begin != std::string_view::npos && begin > 0 && text[begin - 1] != '\'' &&
         text[begin - 1] != '"') {
    begin = text.find('/', begin + 1);
  }
  if (begin == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = text.substr(begin);
  return std::string(rest.substr(0, rest.find_first_of("'\"")));
}

bool in_any(std::string_view file, std::span<const std::string_view> pieces) {
  return base::contains_any(file, pieces);
}

/// Libraries that take a file lock by retrying, and vendored copies of them.
bool waits_for_lock_file(const stacks::Frame& frame) {
  constexpr std::array<std::string_view, 8> kLibraries{
      "/filelock/",    "/filelock.py", "/_filelock.py",      "/fasteners/",
      "/portalocker/", "/lockfile/",   "/oslo_concurrency/", "/flufl/lock/"};
  constexpr std::array<std::string_view, 4> kCalls{"acquire", "_acquire", "lock", "__enter__"};
  const std::string_view name = short_name(frame);
  return (frame.file.ends_with("torch/utils/file_baton.py") && name == "wait") ||
         (in_any(frame.file, kLibraries) &&
          std::find(kCalls.begin(), kCalls.end(), name) != kCalls.end());
}

/// A caller that retries whenever the library gives up.
bool patient(const stacks::Frame& frame) {
  return frame.file.find("/huggingface_hub/") != std::string::npos &&
         short_name(frame) == "WeakFileLock";
}

/// The existence of the file is the lock, not a kernel lock: soft locks and batons.
bool by_existence(const stacks::Frame& frame, std::string_view self) {
  constexpr std::array<std::string_view, 2> kFolders{"/lockfile/", "/flufl/lock/"};
  return frame.file.ends_with("file_baton.py") || in_any(frame.file, kFolders) ||
         self.substr(0, self.find(' ')).find("Soft") != std::string_view::npos;
}

/// Its argument `timeout`; None and negative values mean no limit.
std::optional<double> limit_of(const stacks::Frame& frame) {
  const auto text = local_text(frame, "timeout");
  double seconds = 0;
  if (!text ||
      std::from_chars(text->data(), text->data() + text->size(), seconds).ec != std::errc()) {
    return std::nullopt;
  }
  return seconds >= 0 ? std::optional(seconds) : std::nullopt;
}

}  // namespace

const stacks::Frame* innermost_python(const stacks::ThreadStack& thread) {
  for (const stacks::Frame& frame : thread.frames) {
    if (frame.language == stacks::Language::kPython) {
      return &frame;
    }
  }
  return nullptr;
}

std::string_view short_name(const stacks::Frame& frame) {
  const std::string_view name = frame.function;
  return name.substr(name.rfind('.') + 1);  // npos + 1 = 0
}

std::optional<std::string> local_text(const stacks::Frame& frame, std::string_view name) {
  for (const auto& [local, value] : frame.locals) {
    if (local != name || value.empty() || value == "None") {
      continue;
    }
    const bool quoted = value.size() > 1 && (value.front() == '\'' || value.front() == '"') &&
                        value.back() == value.front();
    return quoted ? value.substr(1, value.size() - 2) : value;
  }
  return std::nullopt;
}

std::optional<std::string> attribute_text(std::string_view object, std::string_view name) {
  const std::string mark = fmt::format(" {}=", name);
  const std::size_t at = object.find(mark);
  const std::size_t open = at + mark.size();
  if (at == std::string_view::npos || open >= object.size() ||
      (object[open] != '\'' && object[open] != '"')) {
    return std::nullopt;
  }
  const std::size_t close = object.find(object[open], open + 1);
  return close == std::string_view::npos
             ? std::nullopt
             : std::optional(std::string(object.substr(open + 1, close - open - 1)));
}

std::optional<LockFileFrame> lock_file_frame(const stacks::ThreadStack& thread) {
  constexpr std::array<std::string_view, 5> kNames{"canonical_path", "lock_file_path",
                                                   "lock_filename", "lock_file", "filename"};
  std::optional<LockFileFrame> found;
  for (const stacks::Frame& frame : thread.frames) {
    if (frame.language != stacks::Language::kPython) {
      continue;
    }
    if (found && patient(frame)) {
      found->gives_up.reset();
    }
    if (!waits_for_lock_file(frame)) {
      continue;
    }
    const std::string self = local_text(frame, "self").value_or("");
    if (!found) {
      found = LockFileFrame{.path = {}, .function = frame.function};
    }
    found->by_existence = found->by_existence || by_existence(frame, self);
    found->gives_up = found->gives_up ? found->gives_up : limit_of(frame);
    for (const std::string_view name : kNames) {
      const auto value = local_text(frame, name);
      const bool better = found->path.empty() || !found->path.starts_with('/');
      if (value && better && !value->starts_with('<')) {
        found->path = *value;
      }
    }
    if (found->path.empty()) {
      found->path = path_within(self);
    }
  }
  return found;
}

std::optional<LockFileFrame> lock_file_frame(const stacks::ThreadStack& thread, pid_t pid) {
  auto found = lock_file_frame(thread);
  if (found && !found->path.empty() && !found->path.starts_with('/')) {
    const auto folder = read_link(proc_path(pid, "cwd"));
    found->path = folder ? fmt::format("{}/{}", *folder, found->path) : std::string();
  }
  return found;
}

}  // namespace ddpdoctor::sources
