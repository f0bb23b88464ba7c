// SPDX-License-Identifier: Apache-2.0
// The meaning of each Xid of NVIDIA's driver: what failed (the GPU, the driver, the program, or
// nothing) and what to do about it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ddpdoctor::detectors {

/// What an Xid is about, the most serious last.
enum class XidClass {
  kNotice,       // a note of the driver; work continues
  kCleanup,      // channels were removed because of an earlier error
  kApplication,  // the program made the GPU do something it cannot do
  kUnknown,      // a number that is not in the table
  kDriver,       // the driver or the GPU's own controller stopped answering
  kLink,         // NVLink
  kHardware,     // memory, power, the bus
};

/// One row of the table.
struct Xid {
  std::int64_t number = 0;
  XidClass speaks_of = XidClass::kUnknown;
  std::string_view what{};  // "Xid 79 (the GPU has fallen off the bus)"
};

/// The row of a number; kUnknown if there is none.
Xid xid(std::int64_t number);

/// What to do about an Xid of this class.
std::string_view remedy(XidClass speaks_of);

}  // namespace ddpdoctor::detectors
