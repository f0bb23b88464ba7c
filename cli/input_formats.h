// SPDX-License-Identifier: Apache-2.0
// What `report` can read: the one table. A format is known by its content; a name only helps where
// content is cut or says nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::cli {

/// One kind of evidence in a file. Exactly one of `read` and `read_all` is set.
struct InputFormat {
  std::string_view name;  // for messages: "ddpdoctor.capture/1 (JSON)"
  /// `head` is the first kHead bytes, never empty.
  bool (*recognises)(std::string_view head, std::string_view path);
  base::Result<model::JobModel> (*read)(std::string_view bytes, const std::string& path);
  /// All files of this format at once, for those that are one for each rank. What could not be
  /// used is put into `failures`; an error when nothing could be used.
  base::Result<model::JobModel> (*read_all)(const std::vector<std::string>& paths,
                                            std::vector<base::Error>& failures);
};

/// In order of preference: the first that recognises a file reads it. The last one is "logs".
std::span<const InputFormat> input_formats();

/// Null when nothing recognises it.
const InputFormat* input_format(std::string_view head, std::string_view path);

/// The same among texts, by any part of the file: what ends a job stands at the end of its output.
const InputFormat* text_format(std::string_view part, std::string_view path);

/// "recordings (.ddpd), ddpdoctor.capture/1 (JSON)"
std::string readable_formats();

}  // namespace ddpdoctor::cli
