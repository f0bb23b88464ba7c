// SPDX-License-Identifier: Apache-2.0
// A terminal taken for a while: alternate screen, no echo, keys one by one; given back whatever
// happens.
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
  /// Takes the terminal; from here on signals are seen by wait() only.
  LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;
  LiveScreen(LiveScreen&&) = delete;
  LiveScreen& operator=(LiveScreen&&) = delete;
  ~LiveScreen();

  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::size_t height() const;
  /// Draws over what was there, without flicker.
  void draw(const std::vector<std::string>& lines) const;
  /// Until the time is over, a key or signal asks to quit, or the size has changed.
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
