// SPDX-License-Identifier: Apache-2.0
// The table of formats that `report` can read. A format is recognized by content; the name counts
// only if the content is truncated or ambiguous.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::cli {

/// One format of evidence. Exactly one of `read` and `read_all` is set.
struct InputFormat {
  std::string_view name;  // for messages: "ddpdoctor.capture/1 (JSON)"
  /// `head` is the first kHead bytes, never empty.
  bool (*recognises)(std::string_view head, std::string_view path);
  base::Result<model::JobModel> (*read)(std::string_view bytes, const std::string& path);
  /// Reads all files of this format at once, for formats with one file per rank. Adds unusable
  /// files to `failures`; fails if none is usable.
  base::Result<model::JobModel> (*read_all)(const std::vector<std::string>& paths,
                                            std::vector<base::Error>& failures);
};

/// In order of preference: the first format that recognizes a file reads it. The last one is
/// "logs".
std::span<const InputFormat> input_formats();

/// Null if no format recognizes it.
const InputFormat* input_format(std::string_view head, std::string_view path);

/// The same for texts, from any part of the file, because the cause of a job's end is at the end of
/// its output.
const InputFormat* text_format(std::string_view part, std::string_view path);

/// The same for a file: the end of a long text is recognizable if its beginning is not.
const InputFormat* format_of(std::string_view head, const std::string& path);

/// A text with an error message, or with a command, is the output of a program, whatever its name;
/// nullptr for others.
const InputFormat* plain_log(const std::string& head, const std::string& path);

/// A plain text with a name that people give to the output of a program: "slurm-17.out".
bool may_be_output(std::string_view head, std::string_view path);

/// "recordings (.ddpd), ddpdoctor.capture/1 (JSON)"
std::string readable_formats();

}  // namespace ddpdoctor::cli
