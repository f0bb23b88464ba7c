// SPDX-License-Identifier: Apache-2.0
// Small questions about Python frames and the rendered values of their locals.
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

/// A local's value as text: quotes of a string are taken off, "None" and the absent are nothing.
std::optional<std::string> local_text(const stacks::Frame& frame, std::string_view name);

/// Value of an attribute in the text of an object: "Saver" for name `_name` in "<Thread at 0x1
/// _name='Saver'>".
std::optional<std::string> attribute_text(std::string_view object, std::string_view name);

/// A function that waits until a lock file is free or gone.
struct LockFileFrame {
  std::string path;  // empty = not readable from the frame; may be relative to the process's folder
  std::string function;       // "FileBaton.wait"
  bool by_existence = false;  // the file's existence is the lock (baton), not a flock on it
  std::optional<double> gives_up = {};  // seconds after which it fails; none = it waits for ever
};
std::optional<LockFileFrame> lock_file_frame(const stacks::ThreadStack& thread);
/// The same, with a relative path completed by the folder the process is in.
std::optional<LockFileFrame> lock_file_frame(const stacks::ThreadStack& thread, pid_t pid);

}  // namespace ddpdoctor::sources
