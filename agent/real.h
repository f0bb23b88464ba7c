// SPDX-License-Identifier: Apache-2.0
// The interposed libc function, looked up once.
#pragma once

#include <atomic>
#include <dlfcn.h>

namespace ddpdoctor::agent {

/// Real<decltype(&::fork)> real{"fork"}; real.get() is the next definition in lookup order.
template <typename Function>
class Real {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}
  Function get() {
    Function found = function_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name_));
      function_.store(found, std::memory_order_release);
    }
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function> function_{nullptr};
};

}  // namespace ddpdoctor::agent
