// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/live_target.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/text.h"

namespace ddpdoctor::stacks {

namespace {

/// The build ID of the object of `mapping`, from its first page in memory; empty if it is not
/// mapped from its start.
std::string build_id_in_memory(const Mapping& mapping, RemoteMemory& memory, const Maps& maps) {
  for (const Mapping& one : maps.all()) {
    if (one.offset == 0 && one.inode == mapping.inode && one.device == mapping.device) {
      std::vector<std::byte> page(kPageSize);
      if (!memory.read(one.start, page)) {
        return {};
      }
      const auto head = ElfFile::from_memory(std::move(page), std::string(mapping.path));
      return head ? (*head)->build_id() : std::string{};
    }
  }
  return {};
}

/// True if `path` is the file of the mapping. On btrfs and overlayfs the device in maps differs
/// from stat's (the kernel shows the lower file system); then the build ID decides.
bool is_same_file(const std::string& path, const ElfFile& file, const Mapping& mapping,
                  RemoteMemory& memory, const Maps& maps) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return false;
  }
  const std::uint64_t device =
      std::uint64_t{::gnu_dev_major(status.st_dev)} << 32U | ::gnu_dev_minor(status.st_dev);
  if (status.st_ino == mapping.inode && device == mapping.device) {
    return true;
  }
  const std::string id = file.build_id();
  return !id.empty() && id == build_id_in_memory(mapping, memory, maps);
}

}  // namespace

ElfFile* ElfCache::open(pid_t pid, const Mapping& mapping, RemoteMemory& memory, const Maps& maps) {
  const auto key = std::make_pair(mapping.device, mapping.inode);
  if (const auto known = files_.find(key); known != files_.end()) {
    return known->second.get();
  }
  auto file =
      ElfFile::open(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end));
  if (!file) {
    for (const std::string& path :
         {fmt::format("/proc/{}/root{}", pid, mapping.path), std::string(mapping.path)}) {
      file = ElfFile::open(path);
      if (file && is_same_file(path, **file, mapping, memory, maps)) {
        break;
      }
      file = base::failure(path + " is another file");
    }
  }
  // A failure is not cached: another process of the job may give access to the file.
  return file ? files_.emplace(key, std::move(*file)).first->second.get() : nullptr;
}

LiveTarget::LiveTarget(pid_t pid, Maps maps, ElfCache& files)
    : pid_(pid), maps_(std::move(maps)), memory_(pid), files_(files), slots_(maps_.all().size()) {}

base::Result<std::unique_ptr<LiveTarget>> LiveTarget::open(pid_t pid, ElfCache& files) {
  Maps maps = TRY(Maps::of(pid));
  return std::unique_ptr<LiveTarget>(new LiveTarget(pid, std::move(maps), files));
}

std::optional<LoadedObject> LiveTarget::load_from_memory(const Mapping& mapping) {
  constexpr std::uint64_t kMaxVdso = 64 * kPageSize;
  if (mapping.path != "[vdso]" || mapping.end - mapping.start > kMaxVdso) {
    return std::nullopt;
  }
  if (!vdso_) {
    std::vector<std::byte> bytes(mapping.end - mapping.start);
    if (memory_.copy(mapping.start, bytes) != bytes.size()) {
      return std::nullopt;
    }
    auto file = ElfFile::from_memory(std::move(bytes), std::string(mapping.path));
    if (!file) {
      return std::nullopt;
    }
    vdso_ = std::move(*file);
  }
  const auto address = vdso_->address_of_offset(0, true);
  return address
             ? std::optional(LoadedObject{.file = vdso_.get(), .bias = mapping.start - *address})
             : std::nullopt;
}

std::optional<LoadedObject> LiveTarget::load(const Mapping& mapping) {
  if (mapping.inode == 0) {
    return load_from_memory(mapping);
  }
  if (!mapping.path.starts_with('/')) {
    return std::nullopt;
  }
  ElfFile* const file = files_.open(pid_, mapping, memory_, maps_);
  if (file == nullptr) {
    return std::nullopt;
  }
  const auto address = file->address_of_offset(mapping.offset, mapping.executable);
  return address ? std::optional(LoadedObject{.file = file, .bias = mapping.start - *address})
                 : std::nullopt;
}

std::optional<LoadedObject> LiveTarget::object_at(RemoteAddress address) {
  const Mapping* const mapping = maps_.find(address);
  if (mapping == nullptr) {
    return std::nullopt;
  }
  Slot& slot = slots_.at(static_cast<std::size_t>(mapping - maps_.all().data()));
  if (!slot.tried) {
    slot.tried = true;
    slot.object = load(*mapping);
  }
  return slot.object;
}

std::optional<RemoteAddress> LiveTarget::symbol(std::string_view object_part,
                                                std::string_view name) {
  std::vector<std::uint64_t> seen;  // inodes already handled: an object has several mappings
  for (const Mapping& mapping : maps_.all()) {
    if (mapping.inode == 0 || std::find(seen.begin(), seen.end(), mapping.inode) != seen.end() ||
        base::file_name(mapping.path).find(object_part) == std::string_view::npos) {
      continue;
    }
    seen.push_back(mapping.inode);
    const auto object = object_at(mapping.start);
    if (!object) {
      continue;
    }
    if (const auto value = object->file->symbol(name)) {
      return object->bias + *value;
    }
  }
  return std::nullopt;
}

bool LiveTarget::refresh_maps() {
  if (refreshed_) {
    return false;
  }
  refreshed_ = true;
  auto maps = Maps::of(pid_);
  if (!maps || maps->all().empty()) {
    return false;
  }
  maps_ = std::move(*maps);
  slots_.assign(maps_.all().size(), Slot{});
  return true;
}

}  // namespace ddpdoctor::stacks
