// SPDX-License-Identifier: Apache-2.0
// What the exit status of ddpdoctor means (DESIGN §4.1); the only place that names the numbers.
#pragma once

namespace ddpdoctor::cli {

inline constexpr int kNothingFound = 0;
inline constexpr int kFound = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNotObserved = 3;  // or the answer could not be delivered

}  // namespace ddpdoctor::cli
