// SPDX-License-Identifier: Apache-2.0
// Code that signs its return addresses (AArch64's pointer authentication) says in its call-frame
// information where. The number of that instruction once meant something else on SPARC, which is
// how libdw before 0.192 reads it, to nonsense. We take signatures away without being told
// (without_signature), so the instruction is overwritten by one that does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collector/stacks/native/elf_parts.h"

namespace ddpdoctor::stacks {

/// Overwrites it in call-frame instructions whose addresses take `address_bytes`; returns how
/// often. Ends at the first byte that it does not understand.
std::size_t blank_return_signing(std::span<std::byte> instructions, std::size_t address_bytes);

/// Overwrites it in the description of the function around a file address, in our private copy.
void blank_return_signing(ElfFile::Parts& parts, std::uint64_t description);

}  // namespace ddpdoctor::stacks
