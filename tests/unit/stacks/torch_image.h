// SPDX-License-Identifier: Apache-2.0
// A simulated process for tests of the torch readers: its memory can be written and can be changed
// while it is read.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collector/stacks/target/remote_memory.h"
#include "collector/stacks/torch/flight_recorder.h"

namespace ddpdoctor::stacks {

/// One block of memory from kBase on; allocations never move.
class FakeProcess : public RemoteMemory {
 public:
  static constexpr RemoteAddress kBase = 0x10000;

  bool read(RemoteAddress address, std::span<std::byte> into) override;
  void forget() override {
    ++forgotten;
  }

  RemoteAddress allocate(std::size_t length);
  void write(RemoteAddress address, std::span<const std::byte> bytes);

  template <typename T>
  void put(RemoteAddress address, T value) {
    write(address, std::as_bytes(std::span(&value, 1)));
  }

  void put_string(RemoteAddress address, const std::string& text);
  /// Gives the object at `address` the type with this mangled name.
  void put_type(RemoteAddress address, const std::string& name);
  void put_vector(RemoteAddress address, std::span<const std::byte> bytes);
  void put_small_vector(RemoteAddress address, const std::vector<std::int64_t>& values);

  /// Called before each read with the read's number, from 0.
  std::function<void(int)> before_read;
  int reads = 0;
  int forgotten = 0;

 private:
  std::vector<std::byte> bytes_;
};

/// A recorder of this layout with room for `max_entries`.
class FakeRecorder {
 public:
  FakeRecorder(FakeProcess& process, const TorchLayout& layout, std::uint64_t max_entries);

  /// Records a call as torch would, overwriting the oldest when full.
  void record(const FlightRecord& record, const std::vector<CodePoint>& calls = {});
  /// FlightRecorder::reset_all.
  void reset();

  [[nodiscard]] RemoteAddress address() const {
    return recorder_;
  }
  [[nodiscard]] RemoteAddress slot(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t recorded() const {
    return next_id_;
  }

 private:
  void put_header();
  void put_tensors(RemoteAddress entry, const FlightRecord& record);

  FakeProcess& process_;
  const TorchLayout& layout_;
  std::uint64_t max_entries_ = 0;
  RemoteAddress recorder_ = 0;
  RemoteAddress entries_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint64_t epoch_ = 0;
};

/// An all_reduce of a 1000x7 float32 in group "0".
FlightRecord all_reduce(std::int64_t sequence);

}  // namespace ddpdoctor::stacks
