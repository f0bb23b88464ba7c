// SPDX-License-Identifier: Apache-2.0
// Unwinds this process from its own registers: no thread is stopped and no memory of another
// process is read, so these tests also run where neither is possible (an emulator).
#include <csignal>
#include <cstring>
#include <ucontext.h>

#include <gtest/gtest.h>

#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/native/native_unwind.h"
#include "collector/stacks/native/return_signing.h"

namespace ddpdoctor::stacks {
namespace {

/// This process, its memory read as its own.
class Own final : public Target {
 public:
  Own() : maps_(*Maps::of(::getpid())), memory_(maps_) {}
  [[nodiscard]] pid_t pid() const override {
    return ::getpid();
  }
  RemoteMemory& memory() override {
    return memory_;
  }
  [[nodiscard]] const Maps& maps() const override {
    return maps_;
  }
  std::optional<LoadedObject> object_at(RemoteAddress address) override {
    const Mapping* const mapping = maps_.find(address);
    if (mapping == nullptr || !mapping->path.starts_with('/')) {
      return std::nullopt;
    }
    auto& file = files_[std::string(mapping->path)];
    if (!file) {
      auto opened = ElfFile::open(std::string(mapping->path));
      if (!opened) {
        return std::nullopt;
      }
      file = std::move(*opened);
    }
    const auto first = file->address_of_offset(mapping->offset, mapping->executable);
    return first ? std::optional(LoadedObject{.file = file.get(), .bias = mapping->start - *first})
                 : std::nullopt;
  }
  std::optional<RemoteAddress> symbol(std::string_view, std::string_view) override {
    return std::nullopt;
  }

 private:
  class Memory final : public RemoteMemory {
   public:
    explicit Memory(const Maps& maps) : maps_(maps) {}
    bool read(RemoteAddress address, std::span<std::byte> into) override {
      const Mapping* const mapping = maps_.find(address);
      if (mapping == nullptr || !mapping->readable || into.size() > mapping->end - address) {
        return false;
      }
      std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());  // NOLINT
      return true;
    }

   private:
    const Maps& maps_;
  };

  Maps maps_;
  Memory memory_;
  std::map<std::string, std::unique_ptr<ElfFile>> files_;
};

Registers registers_in(const ucontext_t& context) {
  Registers registers;
#if defined(__x86_64__)
  const auto& raw = context.uc_mcontext.gregs;
  const std::map<unsigned, int> places{{kRbx, REG_RBX},
                                       {kFramePointer, REG_RBP},
                                       {12, REG_R12},
                                       {13, REG_R13},
                                       {14, REG_R14},
                                       {15, REG_R15},
                                       {kStackPointer, REG_RSP},
                                       {kProgramCounter, REG_RIP}};
  for (const auto& [number, place] : places) {
    registers.set(number, static_cast<std::uint64_t>(raw[place]));  // NOLINT
  }
#else
  for (unsigned i = 19; i <= kReturnAddress; ++i) {
    registers.set(i, context.uc_mcontext.regs[i]);  // NOLINT
  }
  registers.set(kStackPointer, context.uc_mcontext.sp);
  registers.set(kProgramCounter, context.uc_mcontext.pc);
#endif
  return registers;
}

std::vector<RemoteAddress> counters_of(const Unwound& unwound) {
  std::vector<RemoteAddress> counters;
  for (const UnwoundFrame& frame : unwound.frames) {
    counters.push_back(frame.pc);
  }
  return counters;
}

/// The return addresses reported by the functions of this test, innermost first.
using Returns = std::vector<RemoteAddress>;

std::optional<Unwound> walked;

[[gnu::noinline]] void look_here() {
  ucontext_t context{};
  ::getcontext(&context);
  Own own;
  Walk walk{.target = own, .stack = own.memory()};
  walked = unwind(walk, registers_in(context));
}

[[gnu::noinline]] Returns descend(int depth, void (*at_the_end)());
Returns (*volatile descend_as_told)(int, void (*)()) = &descend;

[[gnu::noinline]] Returns descend(int depth, void (*at_the_end)()) {
  // Its size is known only at run time, so the frame needs a frame pointer.
  auto* const room =
      static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(depth) * 24 + 8));
  room[0] = 1;
  Returns returns;
  if (depth == 0) {
    at_the_end();
  } else {
    returns = descend_as_told(depth - 1, at_the_end);
  }
  returns.push_back(reinterpret_cast<RemoteAddress>(__builtin_return_address(0)));
  return returns;
}

/// True if `whole` contains `part` as consecutive members in the same order.
bool lies_in(const Returns& part, const std::vector<RemoteAddress>& whole) {
  return std::search(whole.begin(), whole.end(), part.begin(), part.end()) != whole.end();
}

TEST(OwnStack, IsWalkedToItsEnd) {
  walked.reset();
  const Returns returns = descend(6, &look_here);
  ASSERT_TRUE(walked.has_value());
  EXPECT_EQ(returns.size(), 7U);
  EXPECT_TRUE(lies_in(returns, counters_of(*walked)));
  EXPECT_EQ(walked->end, UnwindEnd::kComplete);
  EXPECT_FALSE(walked->unproven);
}

// An invalid instruction: the handler finds the interrupted code by its address.
#if defined(__x86_64__)
#define INTERRUPT "ud2"
constexpr std::size_t kInterruptBytes = 2;
RemoteAddress& counter_in(ucontext_t& context) {
  return reinterpret_cast<RemoteAddress&>(context.uc_mcontext.gregs[REG_RIP]);
}
#else
#define INTERRUPT "udf #0"
constexpr std::size_t kInterruptBytes = 4;
RemoteAddress& counter_in(ucontext_t& context) {
  return reinterpret_cast<RemoteAddress&>(context.uc_mcontext.pc);
}
#endif

/// Calls nothing: a machine with a link register saves none here.
[[gnu::noinline]] void leaf() {
  asm volatile(INTERRUPT);
}

std::optional<RemoteAddress> interrupted_at;

void handle(int, siginfo_t*, void* context) {
  RemoteAddress& counter = counter_in(*static_cast<ucontext_t*>(context));
  interrupted_at = counter;
  look_here();
  counter += kInterruptBytes;
}

TEST(OwnStack, IsWalkedThroughASignalIntoALeaf) {
  struct sigaction action{};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGILL, &action, &before), 0);
  walked.reset();
  const Returns returns = descend(3, &leaf);
  ASSERT_EQ(::sigaction(SIGILL, &before, nullptr), 0);
  ASSERT_TRUE(walked.has_value());
  ASSERT_TRUE(interrupted_at.has_value());
  const auto counters = counters_of(*walked);
  const auto interrupted = std::find(counters.begin(), counters.end(), *interrupted_at);
  ASSERT_NE(interrupted, counters.end());
  EXPECT_TRUE(walked->frames.at(static_cast<std::size_t>(interrupted - counters.begin())).exact);
  EXPECT_TRUE(lies_in(returns, {interrupted + 2, counters.end()}));  // leaf, then its caller
  EXPECT_EQ(walked->end, UnwindEnd::kComplete);
}

TEST(OwnStack, WithoutAStackPointerTheFramePointerTells) {
  Own own;
  ucontext_t context{};
  ::getcontext(&context);
  const Registers all = registers_in(context);
  const RemoteAddress pc = all[kProgramCounter];
  const auto object = own.object_at(pc);
  ASSERT_TRUE(object.has_value());
  const CfiPlan* const plan = cfi_of(*object->file).plan_at(pc - object->bias);
  ASSERT_NE(plan, nullptr);
  const auto known = cfa_of(*plan, all, own.memory());
  ASSERT_TRUE(known.has_value());
  // A frame record is at the address where the rules say that the caller's frame pointer is saved.
  const auto& rule = plan->rules.at(rule_of(kFramePointer));
  if (rule.kind != RegisterRule::Kind::kExpression) {
    GTEST_SKIP() << "this function saves no frame pointer";
  }
  const auto place = evaluate(rule.expression, all, known, own.memory());
  ASSERT_TRUE(place.has_value());
  Registers few;
  few.set(kFramePointer, place->number);
  EXPECT_EQ(cfa_by_frame_pointer(*plan, few, own.memory()), known);
}

std::vector<std::byte> bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> all;
  for (const unsigned value : values) {
    all.push_back(static_cast<std::byte>(value));
  }
  return all;
}

TEST(ReturnSigning, IsBlankedWhereItIsAnInstruction) {
  // advance_loc 1; negate; advance_loc1 0x2d; def_cfa_offset 0x2d; offset x30; expression of two
  // bytes; negate
  auto code =
      bytes({0x41, 0x2d, 0x02, 0x2d, 0x0e, 0x2d, 0x9e, 0x01, 0x10, 0x1d, 0x02, 0x2d, 0x2d, 0x2d});
  EXPECT_EQ(blank_return_signing(code, 4), 2U);
  EXPECT_EQ(code, bytes({0x41, 0x00, 0x02, 0x2d, 0x0e, 0x2d, 0x9e, 0x01, 0x10, 0x1d, 0x02, 0x2d,
                         0x2d, 0x00}));
}

TEST(ReturnSigning, EndsAtWhatItDoesNotKnow) {
  auto unknown = bytes({0x2d, 0x3f, 0x2d});
  EXPECT_EQ(blank_return_signing(unknown, 4), 1U);
  auto cut = bytes({0x0f, 0x7f, 0x2d});  // an expression longer than the remaining bytes
  EXPECT_EQ(blank_return_signing(cut, 4), 0U);
  auto endless = bytes({0x0e, 0x80, 0x80});
  EXPECT_EQ(blank_return_signing(endless, 4), 0U);
}

}  // namespace
}  // namespace ddpdoctor::stacks
