// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/engine_waits.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestEngineLine = 200;

/// "sample_tokens" of "RPC call to sample_tokens timed out"; empty for other lines.
std::string_view method_in(std::string_view line) {
  constexpr std::string_view kCall = "RPC call to ";
  const std::size_t at = line.find(kCall);
  const std::size_t end = at == line.npos ? at : line.find(" timed out", at);
  return end == line.npos ? std::string_view()
                          : line.substr(at + kCall.size(), end - at - kCall.size());
}

/// vLLM 0.8 to 0.20: "Waiting for 1 local, 0 remote core engine proc(s) to start.": those to
/// connect have not reported yet, those to start have, and initialize.
bool says_initializes(std::string_view line) {
  return line.find(" remote core engine proc(s) to start") != line.npos;
}

bool says_no_block(std::string_view line) {
  return line.find("No available shared memory broadcast block found in ") != line.npos;
}

/// "Running: 1 reqs, Waiting: 0 reqs" of vLLM's statistics: whether it has requests. It prints none
/// while it has nothing to do.
std::optional<bool> has_requests(std::string_view line) {
  const bool counts = base::contains(line, "Running: ") && base::contains(line, " reqs");
  return counts ? std::optional(!base::contains(line, "Running: 0 reqs") ||
                                !base::contains(line, "Waiting: 0 reqs"))
                : std::nullopt;
}

}  // namespace

std::optional<Finding> engine_waits(const model::JobModel& job) {
  std::string method;
  Finding finding;
  int blocks = 0;
  int starts = 0;
  bool ends_in_start = false;
  bool idle = false;  // without requests, workers wait for messages all the time
  for (const model::Log& log : job.logs) {
    for (const std::string_view raw : base::split(log.text, '\n')) {
      const std::string_view line = model::read_log_line(raw.substr(0, 65'536)).text;
      const std::string_view called = base::contains(line, "{") ? std::string_view()  // quoted
                                                                : method_in(line);
      const bool first_call = !called.empty() && method.empty();
      idle = !has_requests(line).value_or(!idle);
      const bool first_block = says_no_block(line) && !idle && ++blocks == 1;
      const bool initializes = says_initializes(line);
      const bool first_start = initializes && ++starts == 1;
      ends_in_start = initializes || (ends_in_start && base::trim(line).empty());
      if (first_call) {
        method = base::elide(base::printable(called), 64);
      }
      if (first_call || first_block || first_start) {
        finding.evidence.push_back(
            {.rank = {},
             .text = "log: " + base::elide(base::printable(base::trim(line)), kLongestEngineLine)});
      }
    }
  }
  const bool ends_waiting = ends_in_start || (blocks > 0 && !output_goes_on(job));
  if (method.empty() && !ends_waiting) {
    return std::nullopt;
  }
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.summary =
      method.empty() && blocks == 0
          ? std::string(
                "vLLM's engine processes have connected and initialize; no line shows what they "
                "wait for")
      : method.empty()
          ? std::string(
                "a process of vLLM waited for messages of its engine or its workers; no "
                "line shows which process is late")
          : fmt::format(
                "vLLM's engine waited for its workers in `{}` until the timeout; no line "
                "shows which worker hangs",
                method);
  finding.fix =
      "Run `ddpdoctor attach PID` on the engine during the wait: it shows where each worker is. "
      "If a worker only compiles or loads, raise VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS.";
  return finding;
}

}  // namespace ddpdoctor::detectors
