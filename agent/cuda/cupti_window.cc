// SPDX-License-Identifier: Apache-2.0
// All of this runs in one thread, the watcher. Each fact is reported once per window, so a hung job
// writes it once.
#include "agent/cuda/cupti_window.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "agent/cuda/cupti_plugin.h"
#include "agent/record/recorder.h"
#include "wire/events.h"

namespace ddpdoctor::agent::cupti {
namespace {

enum class State { kUnasked, kOff, kRequested, kClosed, kOpen };
constinit State state = State::kUnasked;
constinit bool always = false;
constinit const Plugin* plugin = nullptr;
constinit std::uint64_t looked = 0;

constexpr std::uint64_t kUnmoved = 2'000'000'000;  // ns; healthy calls rarely take as long
constexpr std::uint64_t kBetweenLooks = 1'000'000'000;
constexpr std::uint32_t kMostFacts = 512;
constinit std::uint64_t told[kMostFacts]{};
constinit std::uint32_t told_count = 0;

void note(wire::Ring& ring, wire::Phase phase, const char* why) {
  record(ring, {.kind = wire::EventKind::kGpuWindow,
                .phase = phase,
                .text = intern(ring, why, strlen(why))});
}

State read_wish() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read only
  const char* const wish = getenv("DDPDOCTOR_CUPTI");
  if (wish == nullptr || wish[0] == '\0' || strcmp(wish, "0") == 0) {
    return State::kOff;
  }
  always = strcmp(wish, "always") == 0;
  return State::kRequested;
}

/// Next to the agent; never from the search path, where any user's file could be.
const Plugin* load(const char*& why) {
  why = "libddpdoctor_cupti.so is not beside the agent";
  Dl_info where{};
  char path[512];
  if (dladdr(reinterpret_cast<const void*>(&consider_window), &where) == 0 ||
      where.dli_fname == nullptr) {
    return nullptr;
  }
  const char* const slash = strrchr(where.dli_fname, '/');
  const std::size_t folder =
      slash == nullptr ? 0 : static_cast<std::size_t>(slash - where.dli_fname) + 1;
  if (folder == 0 || folder + strlen(kLibraryName) >= sizeof path) {
    return nullptr;
  }
  memcpy(path, where.dli_fname, folder);
  strcpy(path + folder, kLibraryName);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return nullptr;
  }
  const auto* const found = static_cast<const Plugin*>(dlsym(library, kSymbol));
  if (found == nullptr || found->interface != kInterface) {
    why = "libddpdoctor_cupti.so is of another version than the agent";
    return nullptr;
  }
  return found;
}

void become_user(wire::Ring& ring) {
  const char* why = nullptr;
  plugin = load(why);
  why = plugin == nullptr ? why : plugin->subscribe();
  state = why == nullptr ? State::kClosed : State::kOff;
  if (why != nullptr) {
    note(ring, wire::Phase::kFailed, why);
  }
}

void open_window(wire::Ring& ring) {
  plugin->open(always ? Ends::kTold : Ends::kUnknown);
  state = State::kOpen;
  note(ring, wire::Phase::kStarted, "CUPTI");
  told_count = 0;
  looked = 0;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15U;
}

bool is_news(const Fact& fact) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(fact.what) + 1, fact.object);
  hash = mix(mix(hash, fact.other), fact.place);
  hash = mix(mix(hash, fact.thread), fact.finished ? 1 : 2);
  for (const char* at = fact.text; *at != '\0'; ++at) {
    hash = mix(hash, static_cast<unsigned char>(*at));
  }
  for (std::uint32_t i = 0; i < told_count; ++i) {
    if (told[i] == hash) {
      return false;
    }
  }
  if (told_count == kMostFacts) {
    return false;
  }
  told[told_count++] = hash;
  return true;
}

void write(void* context, const Fact& fact) {
  if (!is_news(fact)) {
    return;
  }
  auto& ring = *static_cast<wire::Ring*>(context);
  const bool kernel = fact.what == What::kKernel;
  const bool host = fact.what == What::kHostWait;
  record(ring,
         {.kind = kernel ? wire::EventKind::kGpuKernel : wire::EventKind::kGpuWait,
          .phase = fact.finished ? wire::Phase::kCompleted : wire::Phase::kStarted,
          .object = fact.object,
          .count = host ? std::int64_t{fact.thread} : static_cast<std::int64_t>(fact.other),
          .peer = static_cast<std::int32_t>(fact.place),
          .text = intern(ring, fact.text, strlen(fact.text)),
          .detail = (host ? wire::kOfHost : 0U) | (fact.ends_are_told ? wire::kEndsAreTold : 0U)});
}

}  // namespace

void consider_window(wire::Ring& ring, std::uint64_t unmoved_since) {
  if (state == State::kUnasked) {
    state = read_wish();
  }
  if (state == State::kRequested) {
    become_user(ring);
  }
  if (state == State::kOff) {
    return;
  }
  const std::uint64_t time = now();
  const bool unmoved = unmoved_since != 0 && time - unmoved_since > kUnmoved;
  if (state == State::kClosed && (unmoved || always)) {
    open_window(ring);
  }
  if (state != State::kOpen) {
    return;
  }
  if (unmoved && time - looked > kBetweenLooks) {
    looked = time;
    plugin->look(write, &ring);
  } else if (!unmoved && !always) {
    plugin->close();
    state = State::kClosed;
    note(ring, wire::Phase::kCompleted, "CUPTI");
  }
}

}  // namespace ddpdoctor::agent::cupti
