// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/python_frames.h"

#include <array>

#include <fmt/format.h>

namespace ddpdoctor::sources {

namespace {

/// An absolute path anywhere in a rendered value: "<FileBaton lock_file_path='/x/lock'>".
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
  for (const stacks::Frame& frame : thread.frames) {
    if (frame.language != stacks::Language::kPython) {
      continue;
    }
    const bool baton = frame.file.ends_with("torch/utils/file_baton.py");
    const bool library = frame.file.find("/filelock/") != std::string::npos;
    if (!(baton && short_name(frame) == "wait") &&
        !(library && (short_name(frame) == "acquire" || short_name(frame) == "_acquire"))) {
      continue;
    }
    LockFileFrame found{.path = {}, .function = frame.function, .by_existence = baton};
    constexpr std::array<std::string_view, 4> kNames{"lock_file_path", "lock_filename", "lock_file",
                                                     "self"};
    for (const std::string_view name : kNames) {
      const auto value = local_text(frame, name);
      if (value && found.path.empty()) {
        found.path = value->starts_with('/') ? *value : path_within(*value);
      }
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::sources
