// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/called_lines.h"

#include <memory>
#include <mutex>
#include <utility>

namespace ddpdoctor::program {
namespace {

/// Replaced by each look at the job, unlike what is read from the text itself.
class CalledLines {
 public:
  void set(std::optional<std::set<int>> lines) {
    const std::lock_guard lock(mutex_);
    lines_ = std::move(lines);
  }
  [[nodiscard]] bool may_have(int first, int last) const {
    const std::lock_guard lock(mutex_);
    if (!lines_) {
      return true;
    }
    const auto found = lines_->lower_bound(first);
    return found != lines_->end() && *found <= last;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::set<int>> lines_;
};

CalledLines& called_lines_of(const SourceText& text) {
  using Held = std::shared_ptr<CalledLines>;
  return *text.once<Held>([] { return std::make_shared<CalledLines>(); });
}

}  // namespace

void set_called_lines(const SourceText& text, std::optional<std::set<int>> lines) {
  called_lines_of(text).set(std::move(lines));
}

bool may_have_called(const SourceText& text, Node call) {
  return called_lines_of(text).may_have(call.line(), call.last_line());
}

}  // namespace ddpdoctor::program
