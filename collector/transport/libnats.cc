// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/libnats.h"

#include <array>
#include <dlfcn.h>

#include <fmt/format.h>

namespace ddpdoctor::transport {
namespace {

base::Result<LibNats> load() {
  void* library = nullptr;
  for (const char* const name : {"libnats.so.3.4", "libnats.so.3.8", "libnats.so"}) {
    library = library != nullptr ? library : ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return base::failure("--nats: the NATS client library is not installed",
                         "on each node: apt-get install libnats3.4");
  }
  LibNats out;
#define DDPDOCTOR_LOOK_UP(member)                                                       \
  out.member = reinterpret_cast<decltype(out.member)>(::dlsym(library, #member));       \
  if (out.member == nullptr) {                                                          \
    return base::failure("--nats: the NATS client library here has no " #member,        \
                         "version 3.4 or newer is needed: apt-get install libnats3.4"); \
  }
  DDPDOCTOR_LIBNATS(DDPDOCTOR_LOOK_UP)
#undef DDPDOCTOR_LOOK_UP
  out.sha256 = reinterpret_cast<decltype(out.sha256)>(::dlsym(library, "SHA256"));
  return out;
}

}  // namespace

base::Result<const LibNats*> load_libnats() {
  static const base::Result<LibNats> loaded = load();
  if (!loaded) {
    return tl::make_unexpected(loaded.error());
  }
  return &*loaded;
}

}  // namespace ddpdoctor::transport
