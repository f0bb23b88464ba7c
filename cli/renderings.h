// SPDX-License-Identifier: Apache-2.0
// The table of renderings by file ending and --format word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/folder_writer.h"
#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::cli {

/// A format in which a diagnosis can be written.
struct Rendering {
  std::string_view ending;  // ".json"; empty = only as --format
  std::string_view format;  // "json"; empty = only as a file
  /// Exactly one of the two is set: for one file, or for a folder of files.
  std::string (*render)(const diagnosis::Diagnosis& diagnosis,
                        std::string_view current_folder) = nullptr;
  base::Result<Folder> (*render_folder)(const diagnosis::Diagnosis& diagnosis) = nullptr;
};

/// By the longest matching ending; an error names the file and the supported endings.
base::Result<const Rendering*> rendering_of_file(std::string_view path);

/// By --format word; null for "text", which depends on the terminal.
base::Result<const Rendering*> rendering_of_format(std::string_view format);

}  // namespace ddpdoctor::cli
