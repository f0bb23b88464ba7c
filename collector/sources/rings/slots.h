// SPDX-License-Identifier: Apache-2.0
// The wire's structs without their atomics, for readers that copy bytes out of a ring.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::sources {

/// wire::Slot.
struct PlainSlot {
  std::uint64_t sequence;
  std::uint64_t time;
  std::uint32_t tid;
  std::uint16_t kind;
  std::uint8_t phase;
  std::uint8_t operation;
  std::uint32_t site;
  std::uint16_t group;
  std::uint8_t dtype;
  std::uint8_t reduce_op;
  std::uint64_t object;
  std::int64_t count;
  std::uint32_t group_sequence;
  std::int32_t peer;
  std::uint32_t text;
  std::uint32_t detail;
};
static_assert(sizeof(PlainSlot) == sizeof(wire::Slot));

/// wire::Site.
struct PlainSite {
  std::uint32_t caller;
  std::uint32_t file;
  std::uint32_t function;
  std::uint32_t line;
};
static_assert(sizeof(PlainSite) == sizeof(wire::Site));

/// c10d::ReduceOp by number.
inline constexpr std::array<std::string_view, 15> kReduceOps{
    "sum",        "avg",    "product", "min", "max",  "band",   "bor",   "bxor",
    "premul_sum", "unused", "land",    "lor", "lxor", "minloc", "maxloc"};

/// c10::ScalarType by number, in PyTorch's spelling.
inline constexpr std::array<std::string_view, 30> kDtypes{"uint8",           "int8",
                                                          "int16",           "int32",
                                                          "int64",           "float16",
                                                          "float32",         "float64",
                                                          "complex32",       "complex64",
                                                          "complex128",      "bool",
                                                          "qint8",           "quint8",
                                                          "qint32",          "bfloat16",
                                                          "quint4x2",        "quint2x4",
                                                          "bits1x8",         "bits2x4",
                                                          "bits4x2",         "bits8",
                                                          "bits16",          "float8_e5m2",
                                                          "float8_e4m3fn",   "float8_e5m2fnuz",
                                                          "float8_e4m3fnuz", "uint16",
                                                          "uint32",          "uint64"};

/// The name of an event in RecordedEvent; null for calls and for events that are not kept.
constexpr const char* kept_as(wire::EventKind kind) {
  switch (kind) {
    case wire::EventKind::kStore:
      return "store";
    case wire::EventKind::kFork:
      return "fork";
    case wire::EventKind::kChildExit:
      return "child-exit";
    case wire::EventKind::kSignalSent:
      return "signal-sent";
    case wire::EventKind::kTeam:
      return "team";
    case wire::EventKind::kShmOpen:
      return "shm-open";
    case wire::EventKind::kShmUnlink:
      return "shm-unlink";
    case wire::EventKind::kShmSize:
      return "shm-size";
    case wire::EventKind::kCudaContext:
      return "cuda-context";
    case wire::EventKind::kCudaAfterFork:
      return "cuda-after-fork";
    case wire::EventKind::kDescriptorsFull:
      return "descriptors-full";
    case wire::EventKind::kNoSpace:
      return "no-space";
    case wire::EventKind::kWaitEnd:
      return "wait-end";
    case wire::EventKind::kGpuWindow:
      return "gpu-window";
    case wire::EventKind::kGpuKernel:
      return "gpu-kernel";
    case wire::EventKind::kGraphLaunch:
      return "graph-launch";
    case wire::EventKind::kExit:
      return "exit";
    default:
      return nullptr;
  }
}

}  // namespace ddpdoctor::sources
