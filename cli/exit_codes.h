// SPDX-License-Identifier: Apache-2.0
// The meaning of ddpdoctor's exit statuses (DESIGN §4.1); the only place that defines the numbers.
#pragma once

namespace ddpdoctor::cli {

inline constexpr int kNothingFound = 0;
inline constexpr int kFound = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNotObserved = 3;  // or the result could not be written

}  // namespace ddpdoctor::cli
