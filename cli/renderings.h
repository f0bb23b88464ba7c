// SPDX-License-Identifier: Apache-2.0
// Which rendering a file's ending or a --format word means: the one table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/folder_writer.h"
#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::cli {

/// A way to write a diagnosis down.
struct Rendering {
  std::string_view ending;  // ".json"; empty = only as --format
  std::string_view format;  // "json"; empty = only as a file
  /// Exactly one of the two is set: one file, or a folder of them.
  std::string (*render)(const diagnosis::Diagnosis& diagnosis,
                        std::string_view current_folder) = nullptr;
  base::Result<Folder> (*render_folder)(const diagnosis::Diagnosis& diagnosis) = nullptr;
};

/// By the longest ending that fits; an error names the file and the endings that work.
base::Result<const Rendering*> rendering_of_file(std::string_view path);

/// By --format word; null for "text", which the terminal's properties shape.
base::Result<const Rendering*> rendering_of_format(std::string_view format);

}  // namespace ddpdoctor::cli
