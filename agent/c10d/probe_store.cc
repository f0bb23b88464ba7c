// SPDX-License-Identifier: Apache-2.0
// Waits for keys of the store: the rendezvous and everything built on it.
#include "agent/c10d/torch_objects.h"
#include "agent/hooks.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {
/// The (first) key: get takes a string, wait a vector of strings.
std::uint32_t key_of(wire::Ring& ring, const Hook& hook, const Arguments& arguments) {
  const bool old =
      hook.meaning == Meaning::kStoreGetOldString || hook.meaning == Meaning::kStoreWaitOldString;
  const bool get =
      hook.meaning == Meaning::kStoreGet || hook.meaning == Meaning::kStoreGetOldString;
  // get returns a vector: result address, store, key; wait returns nothing: store, keys
  std::uint64_t address = arguments.value[2];
  if (!get) {
    const Vector& keys = as<Vector>(arguments.value[1]);
    if (keys.begin == keys.end) {
      return 0;
    }
    address = keys.begin;
  }
  const String key = old ? as<OldString>(address).plain() : as<String>(address);
  return key.length < 512 ? intern(ring, key.text, key.length) : 0;
}
}  // namespace

void store_entered(const Hook& hook, const Arguments& arguments) {
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now != nullptr) {
    record(*ring_now, {.kind = wire::EventKind::kStore,
                       .phase = wire::Phase::kStarted,
                       .site = call_site(*ring_now),
                       .text = key_of(*ring_now, hook, arguments)});
  }
}

void store_left(const Hook& hook, const Arguments& arguments, bool threw) {
  wire::Ring* const ring_now = ring();
  if (ring_now != nullptr) {
    record(*ring_now, {.kind = wire::EventKind::kStore,
                       .phase = threw ? wire::Phase::kFailed : wire::Phase::kCompleted,
                       .text = threw ? 0 : key_of(*ring_now, hook, arguments)});
  }
}

}  // namespace ddpdoctor::agent
