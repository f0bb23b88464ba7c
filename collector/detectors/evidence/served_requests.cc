// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/served_requests.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestServed = 200;

/// The number behind one of these words; nothing if none is in the line.
template <std::size_t N>
std::optional<double> number_after(std::string_view line,
                                   const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words) {
    const std::size_t at = line.find(word);
    if (at == line.npos) {
      continue;
    }
    const std::string_view rest = base::trim(line.substr(at + word.size()));
    double value = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec == std::errc()) {
      return value;
    }
  }
  return std::nullopt;
}

/// vLLM: "Avg generation throughput: 75.3 tokens/s, Running: 1 reqs"; SGLang: "Decode batch,
/// #running-req: 2, …, gen throughput (token/s): 61.1".
std::optional<double> throughput_in(std::string_view line) {
  return number_after(line, std::to_array<std::string_view>(
                                {"generation throughput: ", "gen throughput (token/s): "}));
}

std::optional<double> running_in(std::string_view line) {
  return number_after(line, std::to_array<std::string_view>({"Running: ", "#running-req: "}));
}

/// uvicorn's "POST /v1/chat/completions HTTP/1.1" 200 OK. A health check is answered by a server
/// whose engine hangs, too.
bool answers(std::string_view line) {
  return base::contains(line, "\"POST /") && base::contains(line, " HTTP/1.1\" 200");
}

/// The newest state in one log.
struct Serving {
  std::optional<Served> last;

  void read(std::string_view raw) {
    const std::string_view line = model::read_log_line(raw.substr(0, 65'536)).text;
    const auto made = throughput_in(line);
    const double running = running_in(line).value_or(0);
    if (made && (*made > 0 || running == 0)) {
      const bool produced = *made > 0;
      if (produced || last) {  // idle at its end, but it served before
        last = {.what = produced ? fmt::format("generated {:.1f} tokens/s", *made)
                                 : std::string("had no requests left"),
                .line = quoted_line(line)};
      }
    } else if (made) {
      last.reset();  // it has requests and produces nothing
    } else if (answers(line)) {
      last = {.what = "answered a request", .line = quoted_line(line)};
    } else if (model::tells_trouble(raw)) {
      last.reset();
    }
  }

 private:
  static std::string quoted_line(std::string_view line) {
    return base::elide(base::printable(base::trim(line)), kLongestServed);
  }
};

}  // namespace

std::optional<Served> served_until_end(const model::JobModel& job) {
  std::optional<Served> out;
  for (const model::Log& log : job.logs) {
    Serving serving;
    for (const std::string_view raw : base::split(log.text, '\n')) {
      serving.read(raw);
    }
    out = serving.last ? serving.last : out;
  }
  return out;
}

}  // namespace ddpdoctor::detectors
