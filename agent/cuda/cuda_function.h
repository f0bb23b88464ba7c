// SPDX-License-Identifier: Apache-2.0
// What a function of CUDA's runtime would have been without us: the caller's own, because several
// runtimes may live in one process.
#pragma once

namespace ddpdoctor::agent {

inline constexpr int kNoCudaDevice = 100;  // what a machine without CUDA answers

/// `ours` tells the functions of one place apart from each other's: a place calls one of them only.
/// Null when there is none.
void* cuda_function(const char* name, const void* caller, const void* ours);

}  // namespace ddpdoctor::agent
