// SPDX-License-Identifier: Apache-2.0
// The torch release of a process.
#include "collector/stacks/torch/version.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::size_t kMaxVersion = 64;
constexpr std::size_t kMaxSource = 4096;

std::string from_python(PythonReader& python) {
  PythonObjects& objects = python.objects();
  const auto module = objects.module("torch.version");
  const auto version = module ? objects.item(*module, "__version__") : std::nullopt;
  return version ? objects.string(*version, kMaxVersion).value_or("") : "";
}

/// torch/version.py next to torch/lib/libtorch_cpu.so, in the target's own file system.
std::string from_installation(Target& target) {
  for (const Mapping& mapping : target.maps().all()) {
    constexpr std::string_view kLibrary = "/lib/libtorch_cpu.so";
    if (!mapping.path.ends_with(kLibrary)) {
      continue;
    }
    const std::string_view torch = mapping.path.substr(0, mapping.path.size() - kLibrary.size());
    std::ifstream file(fmt::format("/proc/{}/root{}/version.py", target.pid(), torch));
    std::string text(kMaxSource, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return version_in_source(text);
  }
  return "";
}

}  // namespace

std::string version_in_source(std::string_view text) {
  for (const std::string_view line : base::split(text, '\n')) {
    constexpr std::string_view kName = "__version__";
    if (!line.starts_with(kName)) {
      continue;
    }
    const std::size_t open = line.find_first_of("'\"");
    const std::size_t close =
        open == std::string_view::npos ? open : line.find(line[open], open + 1);
    if (close != std::string_view::npos && close - open <= kMaxVersion) {
      return base::printable(line.substr(open + 1, close - open - 1));
    }
  }
  return "";
}

std::string torch_version(Target& target, PythonReader* python) {
  std::string version = python != nullptr ? base::printable(from_python(*python)) : "";
  return version.empty() ? from_installation(target) : version;
}

}  // namespace ddpdoctor::stacks
