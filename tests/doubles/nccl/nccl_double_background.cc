// SPDX-License-Identifier: Apache-2.0
// The double of NCCL: what communicators that do not block run on a background thread of the
// library, and which calls they refuse meanwhile.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <utility>

#include "tests/doubles/nccl/nccl_double.h"

namespace ddpdoctor::doubles {
namespace {

std::atomic<int> refused{0};

int in_background(const std::function<int()>& work) {
  const char* const hold = std::getenv("NCCL_DOUBLE_HOLD");
  while (hold != nullptr && access(hold, F_OK) == 0) {
    pause_a_little();
  }
  const int fails = number_from("NCCL_DOUBLE_FAILS", kSuccess);
  return fails != kSuccess ? fails : work();
}

}  // namespace

int carry_out(std::vector<Communicator*> communicators, std::function<int()> work) {
  bool blocking = true;
  for (const Communicator* const one : communicators) {
    blocking = blocking && one->blocking;
  }
  if (blocking) {
    const int result = work();
    for (Communicator* const one : communicators) {
      one->state = result == kSuccess ? one->state.load() : result;
    }
    return result;
  }
  for (Communicator* const one : communicators) {
    one->state = kInProgress;
  }
  std::thread([communicators = std::move(communicators), work = std::move(work)] {
    const int result = in_background(work);
    for (Communicator* const one : communicators) {
      one->state = result;
    }
  }).detach();
  return kInProgress;
}

int carry_out_or_hold(Communicator* communicator, std::function<int()> work) {
  if (group_depth > 0) {
    held_inits.push_back({communicator, std::move(work)});
    return kSuccess;
  }
  return carry_out({communicator}, std::move(work));
}

bool refuses(Communicator* communicator) {
  if (communicator->state != kInProgress) {
    return false;
  }
  refused.fetch_add(1);
  return true;
}

}  // namespace ddpdoctor::doubles

/// Not part of NCCL: the number of calls on communicators in progress. There should be none.
extern "C" int double_calls_refused() {
  return ddpdoctor::doubles::refused.load();
}
