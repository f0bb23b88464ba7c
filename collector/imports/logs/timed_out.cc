// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/timed_out.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";

/// What torch and gloo (1.13 to 2.13) raise when others do not come in time.
bool says_timeout(std::string_view exception) {
  constexpr std::array<std::string_view, 5> kWords = {"Timed out waiting ", "wait timeout after ",
                                                      "Wait timeout", "Socket Timeout",
                                                      "failed to pass monitoredBarrier"};
  return exception.find("Error") != exception.npos &&
         std::any_of(kWords.begin(), kWords.end(), [exception](std::string_view word) {
           return exception.find(word) != exception.npos;
         });
}

/// What a rank raises because another one has given up.
bool says_consequence(std::string_view exception) {
  constexpr std::array<std::string_view, 4> kWords = {
      "Connection closed by peer", "Connection reset by peer",
      "successfully reached monitoredBarrier", "Broken pipe"};
  return exception.find("Error") != exception.npos &&
         std::any_of(kWords.begin(), kWords.end(), [exception](std::string_view word) {
           return exception.find(word) != exception.npos;
         });
}

struct Raised {
  std::vector<model::Frame> frames;  // outermost first
  std::map<std::string, std::map<int, std::string>> sources;
  std::string_view exception;
};

/// The traceback whose heading is at the cursor.
Raised read_traceback(Lines& lines) {
  Raised out;
  lines.take();
  while (!lines.done() && lines.peek().starts_with(' ')) {
    const std::string_view line = lines.take();
    if (auto frame = python_frame(line)) {
      if (out.frames.size() < kMostFrames) {
        out.frames.push_back(std::move(*frame));
      }
    } else if (!out.frames.empty() && line.starts_with("    ")) {
      const model::Frame& above = out.frames.back();
      out.sources[above.file].try_emplace(above.line, base::elide(base::trim(line), kLongestName));
    }
  }
  out.exception = base::trim(lines.take());
  return out;
}

}  // namespace

std::optional<LastStack> last_stack(std::span<const std::string_view> all) {
  Lines lines(all);
  std::optional<Raised> last;
  while (!lines.done()) {
    if (!base::trim(lines.peek()).starts_with(kTraceback)) {
      lines.take();
      continue;
    }
    Raised raised = read_traceback(lines);
    if (!says_timeout(raised.exception) && !says_consequence(raised.exception)) {
      return std::nullopt;  // a failure of its own
    }
    last = std::move(raised);
  }
  if (!last || last->frames.empty()) {
    return std::nullopt;
  }
  LastStack out{.dump = new_dump(), .timed_out = says_timeout(last->exception)};
  model::Thread* thread = add_thread(out.dump, 0, "MainThread");
  std::reverse(last->frames.begin(), last->frames.end());
  thread->frames = std::move(last->frames);
  out.dump.sources = std::move(last->sources);
  return out;
}

bool has_timed_out(const model::Process& process) {
  return !process.threads.empty() && process.threads.front().capture.ends_with(kTimedOut);
}

void settle_timed_out(std::map<model::Rank, bool> raised, model::JobModel& job) {
  if (job.observations.empty()) {
    return;
  }
  auto& processes = job.observations.back().processes;
  if (std::none_of(processes.begin(), processes.end(), has_timed_out)) {
    return;
  }
  for (const model::CollectiveCall& call : job.collectives) {
    bool& told = raised[call.rank];
    told = told || call.state == model::CallState::kEnqueued ||
           call.state == model::CallState::kStarted;
  }
  for (const auto& [rank, failed] : raised) {
    const bool known =
        std::any_of(processes.begin(), processes.end(),
                    [rank = rank](const model::Process& process) { return process.rank == rank; });
    if (known || failed) {
      continue;
    }
    model::Process process;
    process.ppid = -1;
    process.rank = rank;
    process.role = model::Role::kRank;
    model::Thread& main = process.threads.emplace_back();
    main.waits_on = model::WaitsOn{.kind = "elsewhere", .target = {}, .detail = {}};
    processes.push_back(std::move(process));
  }
  job.progress = model::Progress::kStill;
}

}  // namespace ddpdoctor::imports
