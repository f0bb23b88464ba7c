// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/log.h"

namespace ddpdoctor::cli {

Progress::Progress(std::string message)
    : thread_([text = std::move(message)](const std::stop_token& stop) {
        constexpr std::chrono::milliseconds kPatience{500};
        std::mutex mutex;
        std::condition_variable_any ended;
        std::unique_lock lock(mutex);
        ended.wait_for(lock, stop, kPatience, [] { return false; });
        if (!stop.stop_requested()) {
          base::progress(text);
        }
      }) {}

}  // namespace ddpdoctor::cli
