// SPDX-License-Identifier: Apache-2.0
#include "agent/record/native_site.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

struct Known {
  std::atomic<const void*> address;
  std::atomic<std::uint32_t> site;
};
constexpr std::uint32_t kKnown = 1024;
struct alignas(kPage) KnownSites {
  Known slot[kKnown];
};
constinit KnownSites known{};
enum : int { kUnused, kWipedByKernel, kWipedByHand };
constinit std::atomic<int> wiping{kUnused};

/// Children must not inherit site numbers of this ring.
void prepare_for_forks() {
  if (wiping.load(std::memory_order_relaxed) == kUnused) {
    wiping.store(forget_in_children(&known, sizeof known) ? kWipedByKernel : kWipedByHand,
                 std::memory_order_relaxed);
  }
}

bool of_the_system(const char* path) {
  return strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/lib", 4) == 0;
}

/// "+0x1a2b", interned.
std::uint32_t address_text(wire::Ring& ring, std::uint64_t address) {
  char text[20] = "+0x";
  char digits[16];
  int count = 0;
  do {
    digits[count++] = "0123456789abcdef"[address & 15U];
    address >>= 4U;
  } while (address != 0);
  int length = 3;
  while (count > 0) {
    text[length++] = digits[--count];
  }
  return intern(ring, text, static_cast<std::size_t>(length));
}

std::uint32_t make_site(wire::Ring& ring, const void* address) {
  Dl_info where{};
  link_map* object = nullptr;
  if (dladdr1(address, &where, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
      object == nullptr) {
    return 0;
  }
  char program[512];
  const char* path = object->l_name;
  if (path == nullptr || path[0] == 0) {
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) {
      return 0;
    }
    program[length] = 0;
    path = program;
  } else if (of_the_system(path)) {
    return 0;
  }
  const std::uint32_t index = ring.header.sites.fetch_add(1, std::memory_order_relaxed);
  if (index >= wire::kSites) {
    ring.header.sites.store(wire::kSites, std::memory_order_relaxed);
    return 0;
  }
  wire::Site& site = ring.site[index];
  site.caller = 0;
  site.file = intern(ring, path, strlen(path));
  site.function = address_text(ring, reinterpret_cast<std::uint64_t>(address) - object->l_addr);
  site.line = 0;
  return index;
}

}  // namespace

std::uint32_t native_site(wire::Ring& ring, const void* return_address) {
  const auto hash = reinterpret_cast<std::uint64_t>(return_address) * 0x9E3779B97F4A7C15U;
  for (std::uint32_t i = 0; i < 16; ++i) {
    Known& slot = known.slot[((hash >> 40U) + i) % kKnown];
    const void* const seen = slot.address.load(std::memory_order_acquire);
    if (seen == return_address) {
      return slot.site.load(std::memory_order_acquire);
    }
    if (seen == nullptr) {
      prepare_for_forks();
      const std::uint32_t site = make_site(ring, return_address);
      const void* expected = nullptr;
      if (slot.address.compare_exchange_strong(expected, return_address,
                                               std::memory_order_acq_rel)) {
        slot.site.store(site, std::memory_order_release);
      }
      return site;
    }
  }
  return 0;
}

void forget_native_sites() {
  if (wiping.load(std::memory_order_relaxed) == kWipedByHand) {
    memset(static_cast<void*>(known.slot), 0, sizeof known.slot);
  }
}

}  // namespace ddpdoctor::agent
