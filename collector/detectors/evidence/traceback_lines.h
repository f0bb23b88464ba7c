// SPDX-License-Identifier: Apache-2.0
// The lines of tracebacks, one at a time: Python's own, an exception group's with its margin, a
// rich traceback in its box, pytest's.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The rank or line number at the start of a text; nothing if there is none below the largest world
/// size.
std::optional<int> leading_number(std::string_view text);

/// Removes the margin of an exception group ("  | ") or of a box ("│ … │").
std::string_view without_margin(std::string_view line);

/// Spaces before the text.
std::size_t indentation(std::string_view line);

/// "Traceback (most recent call last):", with any text before it.
bool begins_traceback(std::string_view line);

/// Python's sentence between an exception and the next one in its chain.
bool chains_tracebacks(std::string_view line);

/// How likely a line is the end of a traceback.
enum class EndLike {
  kNo,       // "tensor(0.2)", "loss: 3"
  kPerhaps,  // "OutOfShards: no", "queue.Empty": any capitalized or dotted name
  kYes       // "ValueError: no", "KeyboardInterrupt"
};
EndLike end_like(std::string_view line);

/// "  File "/srv/train.py", line 57, in main" → its place.
std::optional<model::CallSite> traceback_place(std::string_view line);

/// "/srv/train.py:57 in main" of a rich traceback.
/// `cut`: the line before it, if the width of the box cut one in two; may be empty.
std::optional<model::CallSite> boxed_place(std::string_view cut, std::string_view line);

/// pytest's "train.py:57: in main", "train.py:57: ValueError" and "train.py:57:". A warning has
/// text after its name and does not count.
std::optional<model::CallSite> pytest_place(std::string_view line);

/// A line of pytest with the exception: "E   ValueError: no" → the text after the E.
std::optional<std::string_view> pytest_message(std::string_view line);

/// Outermost first; raised by a module in which a launcher waits for its ranks, for one that
/// failed.
bool is_of_launcher(const std::vector<model::CallSite>& frames);

/// Outermost first; raised below a library's function that ends something: shutdown, close.
bool is_of_cleanup(const std::vector<model::CallSite>& frames);

/// The code of torch that calls collectives.
bool is_of_torch_distributed(const model::CallSite& frame);

/// What the NCCL watchdog of a rank writes when it gives up.
inline constexpr std::string_view kWatchdogTimeout = "Watchdog caught collective operation timeout";

/// The class of an exception that the compiler raises for the script itself.
bool is_of_syntax(std::string_view name);

/// Outermost first; inside the join or wait of processes that this one had started.
bool waits_for_children(const std::vector<model::CallSite>& frames);

/// A context manager at whose entry a rank waits.
struct AwaitedContext {
  std::string function = {};    // empty: none
  model::CallSite where = {};   // the line of the `with`
  bool lets_one_first = false;  // a library's that lets the main process go first: its block is
                                // where the awaited rank is
};

/// `frames`: outermost first.
AwaitedContext awaited_context(const std::vector<model::CallSite>& frames);

/// "TimeoutError", "queue.Empty": a wait was over, and who raises from it tells what was waited
/// for.
bool is_end_of_wait(std::string_view exception);

/// The rank in "CheckpointException ranks:dict_keys([5])" of torch.distributed.checkpoint, which
/// every rank raises because of one; absent if there are several.
std::optional<int> failed_rank_of_checkpoint(std::string_view exception);

/// Counts as the user's if the traceback shows no user file.
bool may_be_users_file(std::string_view file);

}  // namespace ddpdoctor::detectors
