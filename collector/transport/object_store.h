// SPDX-License-Identifier: Apache-2.0
// Larger contents that the server keeps under a name, for readers that come later. Old contents are
// dropped when they are too old or too many.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::transport {

struct ObjectInfo {
  std::string name{};
  std::uint64_t size = 0;
  std::map<std::string, std::string> metadata{};
};

class ObjectStore {
 public:
  ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  ObjectStore(ObjectStore&&) = delete;
  ObjectStore& operator=(ObjectStore&&) = delete;
  virtual ~ObjectStore() = default;

  /// Replaces what was kept under this name. Returns when the server has it.
  virtual base::Result<void> put(const ObjectInfo& about, std::string_view bytes) = 0;
  /// The oldest first.
  virtual base::Result<std::vector<ObjectInfo>> list() = 0;
  virtual base::Result<std::string> get(const std::string& name) = 0;
};

}  // namespace ddpdoctor::transport
