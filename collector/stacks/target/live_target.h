// SPDX-License-Identifier: Apache-2.0
// A running process as a Target: its maps, its memory, and its mapped files, which all targets of a
// capture share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "collector/stacks/target/live_memory.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// ELF files by (device, inode): the ranks of a job map the same libtorch, so it is opened once.
class ElfCache {
 public:
  /// The file of a mapping of `pid`, opened by the most reliable way that works: the mapping
  /// itself, the path as the process sees it, the path as we see it; the last two only if they
  /// still refer to the same file. Null if none works.
  ElfFile* open(pid_t pid, const Mapping& mapping, RemoteMemory& memory, const Maps& maps);

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::unique_ptr<ElfFile>> files_;
};

/// One running process. Maps are read once, and again only on request.
class LiveTarget final : public Target {
 public:
  static base::Result<std::unique_ptr<LiveTarget>> open(pid_t pid, ElfCache& files);

  [[nodiscard]] pid_t pid() const override {
    return pid_;
  }
  LiveMemory& memory() override {
    return memory_;
  }
  [[nodiscard]] const Maps& maps() const override {
    return maps_;
  }
  std::optional<LoadedObject> object_at(RemoteAddress address) override;
  std::optional<RemoteAddress> symbol(std::string_view object_part, std::string_view name) override;

  /// Reads the maps again after an unknown address was found; false if that is impossible or was
  /// done already.
  bool refresh_maps();

  /// The maps, for other readers; the target is not usable afterwards.
  Maps release_maps() {
    return std::move(maps_);
  }

 private:
  struct Slot {
    bool tried = false;
    std::optional<LoadedObject> object;
  };

  LiveTarget(pid_t pid, Maps maps, ElfCache& files);
  std::optional<LoadedObject> load(const Mapping& mapping);
  std::optional<LoadedObject> load_from_memory(const Mapping& mapping);

  pid_t pid_;
  Maps maps_;
  LiveMemory memory_;
  ElfCache& files_;
  std::vector<Slot> slots_;  // parallel to the mappings
  std::unique_ptr<ElfFile> vdso_;
  bool refreshed_ = false;
};

}  // namespace ddpdoctor::stacks
