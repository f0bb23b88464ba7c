// SPDX-License-Identifier: Apache-2.0
// Caches costly readings of a value beside the value: each is computed when it is first requested.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <typeindex>
#include <utility>

namespace ddpdoctor::base {

/// One reading per type. A copy of the owner starts empty, because readings may point into the
/// original.
class Memo {
 public:
  Memo() = default;
  ~Memo() = default;
  Memo(const Memo& /*other*/) {}
  Memo(Memo&& /*other*/) noexcept {}
  Memo& operator=(const Memo& other) {
    if (this != &other) {
      clear();
    }
    return *this;
  }
  Memo& operator=(Memo&& /*other*/) noexcept {
    clear();
    return *this;
  }

  /// Returns the reading `T` and computes it with `build()` if it is missing. Valid until clear()
  /// or the end of the memo. `build` may request other readings of the same memo.
  template <class T, class Build>
  const T& once(Build&& build) const {
    const std::type_index key(typeid(T));
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = readings_.find(key); known != readings_.end()) {
        return *static_cast<const T*>(known->second.get());
      }
    }
    auto made = std::make_shared<const T>(std::forward<Build>(build)());
    const std::lock_guard lock(mutex_);
    return *static_cast<const T*>(readings_.try_emplace(key, std::move(made)).first->second.get());
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    readings_.clear();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::type_index, std::shared_ptr<const void>> readings_;
};

}  // namespace ddpdoctor::base
