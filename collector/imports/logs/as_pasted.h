// SPDX-License-Identifier: Apache-2.0
// Undoes what log services, terminals and issue trackers do to a log when it is copied: a table of
// its lines, line breaks at the width of a terminal, removed indentation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// The lines in a table of Markdown ("-- | -- | --" below its first row): without empty cells, and
/// without the time of the service if the lines have times of their own. Nothing if there is no
/// such table.
std::optional<std::string> rows_as_lines(std::string_view text);

/// "File "train.py", line 7, in main" at the beginning of a line below the heading of a traceback:
/// indented as Python does it. Nothing if no frame lost its indentation.
std::optional<std::string> with_indented_frames(std::string_view text);

/// A text that begins with the frames of a traceback and then its exception: with the heading that
/// was not copied. Nothing for other texts.
std::optional<std::string> with_lost_heading(std::string_view text);

/// Entries of a log service that shows the newest first, in the order of their times. Nothing if a
/// time is later than the one above it.
std::optional<std::string> oldest_first(std::string_view text);

/// All of these. Nothing if the text needs none.
std::optional<std::string> as_written(std::string_view text);

}  // namespace ddpdoctor::imports
