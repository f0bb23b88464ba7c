// SPDX-License-Identifier: Apache-2.0
// Code that signs its return addresses (AArch64's pointer authentication) marks this in its
// call-frame information. The number of that instruction has another meaning on SPARC, and libdw
// before 0.192 applies that meaning, with wrong results. We remove signatures without this
// information (without_signature), so the instruction is overwritten with one that does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collector/stacks/native/elf_parts.h"

namespace ddpdoctor::stacks {

/// Overwrites it in call-frame instructions whose addresses have `address_bytes`; returns the
/// number of replacements. Stops at the first unknown byte.
std::size_t blank_return_signing(std::span<std::byte> instructions, std::size_t address_bytes);

/// Overwrites it in our private copy of the description of the function around a file address.
void blank_return_signing(ElfFile::Parts& parts, std::uint64_t description);

}  // namespace ddpdoctor::stacks
