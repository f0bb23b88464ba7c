// SPDX-License-Identifier: Apache-2.0
// "Stack trace of the failed collective": the frames that the flight recorder kept for a call.
#include <string_view>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/c10d_reading.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostTraced = 128;  // the user's, around one call

/// A frame of such a trace.
struct TracedFrame {
  std::int64_t number = 0;
  model::CallSite site;
};

/// "#1 main from /srv/train.py:692".
std::optional<TracedFrame> traced_frame(std::string_view line) {
  constexpr std::string_view kFrom = " from ";
  const bool begins = take_prefix(line, "#");
  const auto own = begins ? take_number(line, kMaxNumber) : std::nullopt;
  if (!own || !take_prefix(line, " ")) {
    return std::nullopt;
  }
  const std::size_t from = line.find(kFrom);
  const std::size_t colon = line.rfind(':');
  if (from == line.npos || colon == line.npos || colon < from + kFrom.size()) {
    return std::nullopt;
  }
  const auto number = number_of(base::trim(line.substr(colon + 1)), model::kMaxWorldSize);
  if (!number) {
    return std::nullopt;
  }
  const std::size_t file = from + kFrom.size();
  return TracedFrame{.number = *own,
                     .site = {.file = base::elide(line.substr(file, colon - file), 4096),
                              .line = static_cast<int>(*number),
                              .function = base::elide(line.substr(0, from), 256)}};
}

/// "Stack trace of the failed collective:": the trace of the newest timeout of this rank begins.
void begin_trace(std::optional<Rank> whose, Reading& reading) {
  reading.tracing = whose;
  for (std::size_t i = reading.timeouts.size(); i > 0 && whose; --i) {
    if (reading.timeouts[i - 1].rank == *whose) {
      reading.traces[*whose] = {.timeout = i - 1, .next = 0};
      return;
    }
  }
  reading.tracing.reset();
}

}  // namespace

/// The user's lines are those around the call, the innermost is the call site. These lines have no
/// rank prefix, so a frame out of order is of another rank.
void read_trace(std::string_view line, std::optional<Rank> whose, Reading& reading) {
  if (line.find("Stack trace of the failed collective:") != line.npos) {
    begin_trace(whose, reading);
    return;
  }
  const auto rank = whose ? whose : reading.tracing;
  const auto trace = rank ? reading.traces.find(*rank) : reading.traces.end();
  auto frame = trace == reading.traces.end() ? std::nullopt : traced_frame(line);
  if (!frame || frame->number != trace->second.next) {
    if (trace != reading.traces.end() && (frame || (!whose && base::trim(line).empty()))) {
      reading.traces.erase(trace);
    }
    return;
  }
  ++trace->second.next;
  CollectiveCall& call = reading.timeouts[trace->second.timeout];
  if (model::is_user_file(frame->site.file) && call.callers.size() < kMostTraced) {
    call.call_site = call.callers.empty() ? frame->site : call.call_site;
    call.callers.push_back(std::move(frame->site));
  }
}

}  // namespace ddpdoctor::imports
