// SPDX-License-Identifier: Apache-2.0
// Takes over a terminal: alternate screen, no echo, single keys; restores it in every case.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <termios.h>
#include <vector>

#include "base/unique_fd.h"

namespace ddpdoctor::cli {

/// What ended a wait.
enum class Wake { kTime, kQuit, kResized };

class LiveScreen {
 public:
  /// Takes over the terminal; from now on only wait() sees signals.
  LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;
  LiveScreen(LiveScreen&&) = delete;
  LiveScreen& operator=(LiveScreen&&) = delete;
  ~LiveScreen();

  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::size_t height() const;
  /// Redraws the screen without flicker.
  void draw(const std::vector<std::string>& lines) const;
  /// Returns when the time is over, a key or signal asks to quit, or the size has changed.
  Wake wait(std::chrono::milliseconds time);

 private:
  void take();
  void give_back() const;
  bool take_signal();

  termios before_{};
  bool changed_ = false;
  bool resized_ = false;
  base::UniqueFd signals_;
};

}  // namespace ddpdoctor::cli
