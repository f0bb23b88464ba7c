// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/return_signing.h"

#include <cstring>
#include <dwarf.h>
#include <optional>
#include <string_view>
#include <unistd.h>

#include <sys/mman.h>

namespace ddpdoctor::stacks {

namespace {

constexpr unsigned kNegateWithPc = 0x2c;  // the newer of the two
constexpr unsigned kNegate = 0x2d;

/// Reads the bytes of a file from front to back; fails permanently after a read beyond the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool good() const {
    return good_;
  }
  [[nodiscard]] std::size_t at() const {
    return at_;
  }
  [[nodiscard]] bool done() const {
    return !good_ || at_ == bytes_.size();
  }
  void skip(std::uint64_t count) {
    good_ = good_ && count <= bytes_.size() - at_;
    at_ += good_ ? count : 0;
  }
  unsigned byte() {
    const std::size_t here = at_;
    skip(1);
    return good_ ? std::to_integer<unsigned>(bytes_[here]) : 0;
  }
  std::uint32_t word() {
    const std::size_t here = at_;
    std::uint32_t value = 0;
    skip(sizeof(value));
    if (good_) {
      std::memcpy(&value, bytes_.data() + here, sizeof(value));
    }
    return value;
  }
  std::uint64_t leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; good_; shift += 7) {
      const unsigned next = byte();
      value |= shift < 64 ? std::uint64_t{next & 0x7fU} << shift : 0;
      if ((next & 0x80U) == 0) {
        break;
      }
    }
    return value;
  }
  std::string_view text() {
    const std::size_t here = at_;
    while (byte() != 0) {
    }
    return good_ ? std::string_view(reinterpret_cast<const char*>(bytes_.data() + here))  // NOLINT
                 : std::string_view{};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

/// Skips the operands of an instruction; false if the instruction is unknown.
bool skip_operands(Reader& reader, unsigned instruction, std::size_t address_bytes) {
  switch (instruction) {
    case DW_CFA_nop:
    case DW_CFA_remember_state:
    case DW_CFA_restore_state:
    case kNegate:
    case kNegateWithPc:
      return true;
    case DW_CFA_set_loc:
      reader.skip(address_bytes);
      return true;
    case DW_CFA_advance_loc1:
      reader.skip(1);
      return true;
    case DW_CFA_advance_loc2:
      reader.skip(2);
      return true;
    case DW_CFA_advance_loc4:
      reader.skip(4);
      return true;
    case DW_CFA_restore_extended:
    case DW_CFA_undefined:
    case DW_CFA_same_value:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_GNU_args_size:
      reader.leb();
      return true;
    case DW_CFA_offset_extended:
    case DW_CFA_register:
    case DW_CFA_def_cfa:
    case DW_CFA_offset_extended_sf:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
    case DW_CFA_GNU_negative_offset_extended:
      reader.leb();
      reader.leb();
      return true;
    case DW_CFA_def_cfa_expression:
      reader.skip(reader.leb());
      return true;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
      reader.leb();
      reader.skip(reader.leb());
      return true;
    default:
      return false;
  }
}

/// Bytes of an address in this encoding (DW_EH_PE_…); nothing if the length varies.
std::optional<std::size_t> encoded_bytes(unsigned encoding) {
  switch (encoding & 0x07U) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
      return 8;
    case DW_EH_PE_udata2:
      return 2;
    case DW_EH_PE_udata4:
      return 4;
    default:
      return std::nullopt;
  }
}

/// How a description's common part encodes addresses.
struct Common {
  bool sized = false;  // augmentation data with their length follow
  std::size_t address_bytes = 8;
};

std::optional<Common> read_common(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  reader.skip(8);
  const unsigned version = reader.byte();
  const std::string_view augmentation = reader.text();
  reader.leb();
  reader.leb();
  if (version == 1) {
    reader.skip(1);
  } else {
    reader.leb();
  }
  Common common;
  if (augmentation.starts_with('z')) {
    common.sized = true;
    reader.leb();
  }
  for (const char letter : augmentation.substr(common.sized ? 1 : 0)) {
    if (letter == 'R' || letter == 'P') {
      const auto length = encoded_bytes(reader.byte());
      if (!length) {
        return std::nullopt;
      }
      if (letter == 'R') {
        common.address_bytes = *length;
      } else {
        reader.skip(*length);
      }
    } else if (letter == 'L') {
      reader.skip(1);
    } else if (letter != 'S' && letter != 'B') {
      return std::nullopt;
    }
  }
  return reader.good() ? std::optional(common) : std::nullopt;
}

/// The bytes of our copy from `offset`, writable.
std::span<std::byte> writable(ElfFile::Parts& parts, std::uint64_t offset, std::size_t length) {
  const std::span<std::byte> bytes = parts.image.subspan(offset, length);
  if (parts.mapped) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t from = offset / page * page;
    if (::mprotect(parts.image.data() + from, offset + length - from, PROT_READ | PROT_WRITE) !=
        0) {
      return {};
    }
  }
  return bytes;
}

}  // namespace

std::size_t blank_return_signing(std::span<std::byte> instructions, std::size_t address_bytes) {
  constexpr unsigned kWithOperand = 0xc0;  // the upper two bits alone can identify an instruction
  std::size_t blanked = 0;
  for (Reader reader(instructions); !reader.done();) {
    const std::size_t here = reader.at();
    const unsigned instruction = reader.byte();
    if ((instruction & kWithOperand) == DW_CFA_offset) {
      reader.leb();
    } else if ((instruction & kWithOperand) == 0 &&
               !skip_operands(reader, instruction, address_bytes)) {
      break;
    }
    if (instruction == kNegate || instruction == kNegateWithPc) {
      instructions[here] = std::byte{DW_CFA_nop};
      ++blanked;
    }
  }
  return blanked;
}

void blank_return_signing(ElfFile::Parts& parts, std::uint64_t description) {
  constexpr std::size_t kPrefix = 8;  // length, and distance back to the common part
  constexpr std::size_t kLongest = std::size_t{1} << 20U;
  const auto* const image = parts.image.data();
  const auto inside = [&](std::uint64_t offset, std::size_t length) {
    return parts.range(offset, length).size() == length;
  };
  if (!inside(description, kPrefix)) {
    return;
  }
  Reader prefix(parts.range(description, kPrefix));
  const std::size_t length = prefix.word() + sizeof(std::uint32_t);
  const std::uint64_t back = prefix.word();
  const std::uint64_t common_at = description + sizeof(std::uint32_t) - back;
  if (length > kLongest || !inside(description, length) || back == 0 ||
      back > description + sizeof(std::uint32_t) || common_at >= description) {
    return;
  }
  const auto common = read_common({image + common_at, description - common_at});
  if (!common) {
    return;
  }
  Reader reader(parts.range(description, length));
  reader.skip(kPrefix + 2 * common->address_bytes);
  if (common->sized) {
    reader.skip(reader.leb());
  }
  const std::size_t begin = reader.at();
  if (!reader.good() || begin == length) {
    return;
  }
  // Checked on a copy first: most functions do not sign, and their pages stay unchanged.
  std::vector<std::byte> copy(image + description + begin, image + description + length);
  if (blank_return_signing(copy, common->address_bytes) == 0) {
    return;
  }
  if (const auto ours = writable(parts, description, length); !ours.empty()) {
    std::memcpy(ours.data() + begin, copy.data(), copy.size());
  }
}

}  // namespace ddpdoctor::stacks
