// SPDX-License-Identifier: Apache-2.0
// Source files that several readers of one job need. A reader that opens a file again uses the text
// that was parsed before, if the file still has the same lines.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// By the path that a process names. Two processes may name different files by one path.
using KnownTexts = std::map<std::string, SourceText>;

/// The text of a file with these lines.
inline SourceText text_of(const std::string& path, SourceText::Map lines, const KnownTexts& known) {
  const auto found = known.find(path);
  return found != known.end() && found->second.lines() == lines ? found->second
                                                                : SourceText(std::move(lines));
}

}  // namespace ddpdoctor::program
