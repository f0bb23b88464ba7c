// SPDX-License-Identifier: Apache-2.0
// The known lines of one source file and the structures read from them. Gaps are allowed: a
// recording may contain only some lines. Copies share their lines until one is edited, so a file is
// parsed once even if the job is copied.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/memo.h"

namespace ddpdoctor::program {

/// Lines by number, from 1. Behaves like a constant map.
class SourceText {
 public:
  using Map = std::map<int, std::string>;
  using const_iterator = Map::const_iterator;
  using value_type = Map::value_type;

  SourceText() = default;
  SourceText(Map lines) : state_(std::make_shared<State>(std::move(lines))) {}
  SourceText(std::initializer_list<value_type> lines) : SourceText(Map(lines)) {}

  [[nodiscard]] const Map& lines() const {
    static const Map kNone;
    return state_ ? state_->lines : kNone;
  }
  [[nodiscard]] const_iterator begin() const {
    return lines().begin();
  }
  [[nodiscard]] const_iterator end() const {
    return lines().end();
  }
  [[nodiscard]] auto rbegin() const {
    return lines().rbegin();
  }
  [[nodiscard]] auto rend() const {
    return lines().rend();
  }
  [[nodiscard]] const_iterator find(int line) const {
    return lines().find(line);
  }
  [[nodiscard]] const_iterator lower_bound(int line) const {
    return lines().lower_bound(line);
  }
  [[nodiscard]] const_iterator upper_bound(int line) const {
    return lines().upper_bound(line);
  }
  [[nodiscard]] const std::string& at(int line) const {
    return lines().at(line);
  }
  [[nodiscard]] bool contains(int line) const {
    return lines().contains(line);
  }
  [[nodiscard]] std::size_t count(int line) const {
    return lines().count(line);
  }
  [[nodiscard]] std::size_t size() const {
    return lines().size();
  }
  [[nodiscard]] bool empty() const {
    return lines().empty();
  }
  bool operator==(const SourceText& other) const {
    return lines() == other.lines();
  }

  /// For writing; afterwards everything read from the text is read again.
  std::string& operator[](int line) {
    return own().lines[line];
  }
  void try_emplace(int line, std::string text) {
    own().lines.try_emplace(line, std::move(text));
  }
  /// Lines that are already known are kept.
  void merge(const SourceText& other) {
    own().lines.insert(other.begin(), other.end());
  }

  /// A structure read from these lines: built on first use, valid until the text is edited or
  /// destroyed.
  template <class Reading, class Build>
  const Reading& once(Build&& build) const {
    return state().memo.once<Reading>(std::forward<Build>(build));
  }

 private:
  struct State {
    State() = default;
    explicit State(Map text) : lines(std::move(text)) {}
    Map lines;
    base::Memo memo;
  };

  [[nodiscard]] const State& state() const {
    static const State kNone;
    return state_ ? *state_ : kNone;
  }

  State& own() {
    if (!state_) {
      state_ = std::make_shared<State>();
    } else if (state_.use_count() > 1) {
      state_ = std::make_shared<State>(state_->lines);
    } else {
      state_->memo.clear();
    }
    return *state_;
  }

  std::shared_ptr<State> state_;
};

}  // namespace ddpdoctor::program
