// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/remote_tracebacks.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestTask = 100;
constexpr std::size_t kLongestAddress = 64;

/// The text after `word`, up to a comma or a bracket.
std::string_view field_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  const std::string_view rest =
      at == text.npos ? std::string_view() : text.substr(at + word.size());
  return rest.substr(0, rest.find_first_of(",)"));
}

}  // namespace

std::optional<Remote> ray_heading(std::string_view line) {
  constexpr std::string_view kTask = "ray::";
  const std::size_t at = line.find(kTask);
  const std::size_t open = at == line.npos ? at : line.find(" (pid=", at);
  if (open == line.npos || line.find(" ip=", open) == line.npos) {
    return std::nullopt;
  }
  std::string_view name = line.substr(at + kTask.size(), open - at - kTask.size());
  name = name.ends_with("()") ? name.substr(0, name.size() - 2) : name;
  Remote out{.name = base::elide(base::printable(name), kLongestTask)};
  const std::string_view rest = line.substr(open);
  const std::string_view pid = field_behind(rest, "(pid=");
  std::from_chars(pid.data(), pid.data() + pid.size(), out.pid);
  out.host = base::elide(base::printable(field_behind(rest, " ip=")), kLongestAddress);
  return out;
}

bool announces_quotation(std::string_view line) {
  return base::trim(line).ends_with("RemoteTraceback:");
}

bool is_of_forked_child(const std::vector<model::CallSite>& frames) {
  const auto any = [&frames](std::string_view file) {
    return std::any_of(frames.begin(), frames.end(),
                       [file](const model::CallSite& frame) { return frame.file.ends_with(file); });
  };
  return (any("torch/utils/data/_utils/worker.py") || any("multiprocessing/process.py") ||
          any("multiprocessing/pool.py") || any("concurrent/futures/process.py")) &&
         !any("multiprocessing/spawn.py") && !any("multiprocessing/forkserver.py");
}

bool is_of_started_process(const std::vector<model::CallSite>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const model::CallSite& frame) {
    return frame.function == "_bootstrap" && frame.file.ends_with("multiprocessing/process.py");
  });
}

model::CallSite innermost_user(const std::vector<model::CallSite>& frames) {
  const auto own = std::find_if(frames.rbegin(), frames.rend(), [](const model::CallSite& frame) {
    return model::is_user_file(frame.file);
  });
  return own == frames.rend() ? model::CallSite{} : *own;
}

std::string named(const Remote& remote) {
  if (remote.pid <= 0) {
    return remote.name.empty() ? "a worker process" : remote.name;
  }
  return fmt::format("{} (pid {}{}{})", remote.name.empty() ? "a worker process" : remote.name,
                     remote.pid, remote.host.empty() ? "" : " on ", remote.host);
}

std::string named_by_label(std::string_view label) {
  const std::size_t pid = label.find(" pid=");
  if (pid == label.npos) {
    return {};
  }
  const std::string_view name = label.substr(0, label.find_first_of(" ,"));
  Remote out{.name = base::elide(base::printable(name), kLongestTask)};
  const std::string_view number = label.substr(pid + 5);
  std::from_chars(number.data(), number.data() + number.size(), out.pid);
  out.host = base::elide(base::printable(field_behind(label, " ip=")), kLongestAddress);
  return out.pid > 0 ? named(out) : std::string();
}

}  // namespace ddpdoctor::detectors
