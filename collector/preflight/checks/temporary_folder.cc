// SPDX-License-Identifier: Apache-2.0
// The folder for temporary files: multiprocessing creates its sockets there, whose paths may have
// 107 bytes; extension builds and compile caches fill it.
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::temporary_folder {
namespace {

constexpr std::size_t kLongestSocketPath = 107;  // bytes of sun_path without the final NUL
constexpr std::size_t kOfTheSocket = 32;         // "/pymp-XXXXXXXX/listener-XXXXXXXX"
constexpr std::uint64_t kSmall = std::uint64_t{200} << 20U;

Remarks look(const Setting& setting) {
  const std::string folder = setting.variable("TMPDIR").value_or("/tmp");
  if (::access((setting.root + folder).c_str(), W_OK | X_OK) != 0) {
    return {{.level = Level::kBreaks,
             .what = fmt::format(
                 "{} is not writable: multiprocessing cannot create its sockets there", folder),
             .fix = "export TMPDIR=/tmp, or make the folder"}};
  }
  if (folder.size() + kOfTheSocket > kLongestSocketPath) {
    return {
        {.level = Level::kBreaks,
         .what = fmt::format(
             "TMPDIR has {} bytes: paths of sockets below it are too long (AF_UNIX path too long)",
             folder.size()),
         .fix = "export TMPDIR=/tmp"}};
  }
  const auto space = setting.space(folder);
  if (space && space->free < kSmall) {
    return {
        {.level = Level::kWarning,
         .what = fmt::format("{}: {} free", folder, base::bytes(static_cast<double>(space->free))),
         .fix = "free some space, or point TMPDIR elsewhere"}};
  }
  return {{.level = Level::kOk,
           .what = fmt::format("{}: {} free", folder,
                               base::bytes(space ? static_cast<double>(space->free) : 0)),
           .fix = {}}};
}

}  // namespace

extern const Check check;
const Check check{.name = "temporary-folder", .title = "Folder for temporary files", .look = look};

}  // namespace ddpdoctor::preflight::temporary_folder
