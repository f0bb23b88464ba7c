// SPDX-License-Identifier: Apache-2.0
// Small queries on Python frames and the text of their locals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "collector/stacks/stack.h"

namespace ddpdoctor::sources {

/// The innermost Python frame; nullptr when there is none.
const stacks::Frame* innermost_python(const stacks::ThreadStack& thread);

/// "acquire" of "_ModuleLock.acquire".
std::string_view short_name(const stacks::Frame& frame);

/// A local's value as text: without a string's quotes; nothing for "None" and missing locals.
std::optional<std::string> local_text(const stacks::Frame& frame, std::string_view name);

/// The value of an attribute in an object's text: "Saver" for `_name` in "<Thread at 0x1
/// _name='Saver'>".
std::optional<std::string> attribute_text(std::string_view object, std::string_view name);

/// A function that waits until a lock file is released or removed.
struct LockFileFrame {
  std::string path;      // empty = not shown by the frame; may be relative to the process's folder
  std::string function;  // "FileBaton.wait"
  bool by_existence = false;  // the file's existence is the lock (baton), not a flock on it
  std::optional<double> gives_up = {};  // seconds after which it fails; none = no timeout
};
std::optional<LockFileFrame> lock_file_frame(const stacks::ThreadStack& thread);
/// The same, with a relative path completed by the working directory of the process.
std::optional<LockFileFrame> lock_file_frame(const stacks::ThreadStack& thread, pid_t pid);

}  // namespace ddpdoctor::sources
