// SPDX-License-Identifier: Apache-2.0
// What each Xid of NVIDIA's driver says: who failed (the GPU, the driver, the program, or nobody)
// and what to do about it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ddpdoctor::detectors {

/// Who an Xid speaks of, the worst last.
enum class XidClass {
  kNotice,       // a note of the driver; work goes on
  kCleanup,      // channels were removed because of something before
  kApplication,  // the program gave the GPU something that it cannot do
  kUnknown,      // a number that the table does not have
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

/// The row of a number; kUnknown where there is none.
Xid xid(std::int64_t number);

/// What to do about an Xid of this class.
std::string_view remedy(XidClass speaks_of);

}  // namespace ddpdoctor::detectors
