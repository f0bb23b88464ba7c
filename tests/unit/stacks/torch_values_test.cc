// SPDX-License-Identifier: Apache-2.0
// How torch's objects are written, and what is read if their memory is corrupt.
#include <gtest/gtest.h>

#include "collector/stacks/torch/groups.h"
#include "collector/stacks/torch/tensor_item.h"
#include "collector/stacks/torch/values.h"
#include "collector/stacks/torch/version.h"
#include "tests/unit/stacks/torch_image.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::size_t kHeader = 16;
constexpr std::uint16_t kFloat32 = 6;
constexpr std::uint16_t kBfloat16 = 15;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;

PythonLayout python_layout() {
  PythonLayout layout;
  layout.object_header = kHeader;
  return layout;
}

/// Python objects of a simulated process.
struct Values {
  std::string repr(RemoteAddress object, std::string_view type) {
    return torch_repr(objects, layouts, groups, object, type).value_or("not mine");
  }

  RemoteAddress tensor(const std::vector<std::int64_t>& sizes, std::uint16_t dtype) {
    impl = process.allocate(512);
    process.put(impl + layout->shape, static_cast<std::uint64_t>(sizes.size()));
    RemoteAddress place = impl + layout->shape + 8;
    if (sizes.size() > 5) {
      const RemoteAddress outside = process.allocate(sizes.size() * 16);
      process.put(place, outside);
      place = outside;
    }
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) {
      process.put(place, size);
      place += 8;
      count *= size;
    }
    process.put(impl + layout->count, count);
    process.put(impl + layout->dtype, dtype);
    const RemoteAddress object = process.allocate(64);
    process.put(object + kHeader + layout->variable, impl);
    return object;
  }

  /// An instance of a class made by pybind11.
  RemoteAddress bound(RemoteAddress value, std::uint8_t flags = 3) {
    const RemoteAddress object = process.allocate(64);
    process.put(object + kHeader, value);
    process.put(object + kHeader + 32, flags);
    return object;
  }

  FakeProcess process;
  PythonLayout python = python_layout();
  PythonObjects objects{process, python};
  const TorchLayout* layout = torch_layout("2.13.0");  // the layout of the memory
  TorchLayouts layouts = torch_layouts("2.13.0");      // the layout that the reader assumes
  std::map<RemoteAddress, std::string> groups;
  RemoteAddress impl = 0;  // TensorImpl of the last tensor
};

TEST(TorchValues, SpellTensorsByShapeAndType) {
  Values values;
  EXPECT_EQ(values.repr(values.tensor({1000, 7}, kFloat32), "Tensor"), "Tensor(1000x7, float32)");
  EXPECT_EQ(values.repr(values.tensor({3}, kBfloat16), "Parameter"), "Tensor(3, bfloat16)");
  EXPECT_EQ(values.repr(values.tensor({}, kFloat32), "Tensor"), "Tensor(scalar, float32)");
  EXPECT_EQ(values.repr(values.tensor({0, 4}, kFloat32), "Tensor"), "Tensor(0x4, float32)");
  EXPECT_EQ(values.repr(values.tensor({1, 2, 3, 4, 5, 6}, kFloat32), "Tensor"),
            "Tensor(1x2x3x4x5x6, float32)");
}

TEST(TorchValues, OfOlderTorchLieElsewhere) {
  Values values;
  values.layout = torch_layout("2.8.0");
  values.layouts = torch_layouts("2.8.0");
  ASSERT_NE(values.layout->variable, torch_layout("2.13.0")->variable);
  EXPECT_EQ(values.repr(values.tensor({5}, kFloat32), "Tensor"), "Tensor(5, float32)");
}

TEST(TorchValues, ThatDoNotAddUpAreOnlyNamed) {
  Values values;
  const RemoteAddress wrong_count = values.tensor({2, 3}, kFloat32);
  values.process.put(values.impl + values.layout->count, std::int64_t{7});
  EXPECT_EQ(values.repr(wrong_count, "Tensor"), "<Tensor>");
  const RemoteAddress many = values.tensor({2, 3}, kFloat32);
  values.process.put(values.impl + values.layout->shape, kHuge);
  EXPECT_EQ(values.repr(many, "Tensor"), "<Tensor>");
  const RemoteAddress outside = values.tensor({1, 1, 1, 1, 1, 1}, kFloat32);
  values.process.put(values.impl + values.layout->shape + 8, kHuge);
  EXPECT_EQ(values.repr(outside, "Tensor"), "<Tensor>");
  EXPECT_EQ(values.repr(values.tensor({2}, 4000), "Tensor"), "<Tensor>");
  // A product that overflows back to the count.
  const RemoteAddress overflow = values.tensor({2, 2}, kFloat32);
  values.process.put(values.impl + values.layout->shape + 8, std::int64_t{1} << 62);
  values.process.put(values.impl + values.layout->shape + 16, std::int64_t{4});
  values.process.put(values.impl + values.layout->count, std::int64_t{0});
  EXPECT_EQ(values.repr(overflow, "Tensor"), "<Tensor>");
  EXPECT_EQ(values.repr(0, "Tensor"), "<Tensor>");
  EXPECT_EQ(values.repr(kHuge, "Parameter"), "<Parameter>");
}

TEST(TorchValues, OfAnUnknownReleaseAreSpelledWhereTheirTypeAndSizesFitOneLayout) {
  for (const char* like : {"2.8.0", "2.12.0", "2.15.0"}) {
    Values values;
    values.layout = torch_layout(like);
    values.layouts = torch_layouts("2.99.0a0+nv25.10");
    ASSERT_EQ(values.layouts.exact, nullptr);
    const RemoteAddress object = values.tensor({2, 3}, kFloat32);
    EXPECT_EQ(values.repr(object, "Tensor"), "<Tensor>") << "no tensor by its type";
    values.process.put_type(values.impl, "N3c1010TensorImplE");
    EXPECT_EQ(values.repr(object, "Tensor"), "Tensor(2x3, float32)") << like;
    values.process.put_type(values.impl, "N3c107StorageE");
    EXPECT_EQ(values.repr(object, "Tensor"), "<Tensor>");
  }
}

TEST(TorchValues, OfAnUnknownReleaseAreOnlyNamedWhereTwoLayoutsFit) {
  Values values;
  values.layout = torch_layout("2.15.0");
  values.layouts = torch_layouts("");
  const RemoteAddress object = values.tensor({2, 3}, kFloat32);
  values.process.put_type(values.impl, "N3c1010TensorImplE");
  const TorchLayout& older = *torch_layout("2.12.0");
  values.process.put(values.impl + older.shape, std::uint64_t{1});  // was the first size, 2
  values.process.put(values.impl + older.count, std::int64_t{3});   // and the type
  values.process.put(values.impl + values.layout->shape + 8, std::int64_t{1});
  values.process.put(values.impl + values.layout->count, std::int64_t{3});
  values.process.put(values.impl + older.shape + 8, std::int64_t{3});
  EXPECT_EQ(values.repr(object, "Tensor"), "<Tensor>");
}

TEST(TorchValues, OfAnUnknownReleaseKeepTheirGroupsAndProvenReduceOperations) {
  Values values;
  values.layouts = torch_layouts("3.0.0");
  values.groups[77] = "0";
  EXPECT_EQ(values.repr(77, "torch._C._distributed_c10d.ProcessGroup"), "<ProcessGroup 0>");
  const RemoteAddress operation = values.process.allocate(64);
  const RemoteAddress object = values.bound(operation);
  values.process.put(operation + 8, std::uint32_t{1});  // references
  values.process.put(operation + 16, std::uint8_t{4});  // since torch 2.4
  values.process.put(operation + 24, std::uint8_t{3});  // before
  EXPECT_EQ(values.repr(object, "ReduceOp"), "<ReduceOp>");
  values.process.put_type(operation, "N4c10d8ReduceOpE");
  EXPECT_EQ(values.repr(object, "ReduceOp"), "ReduceOp.MIN");
  values.process.put(operation + 12, std::uint32_t{1});  // weak references, in four bytes
  EXPECT_EQ(values.repr(object, "ReduceOp"), "ReduceOp.MAX");
  values.process.put(operation + 8, std::uint32_t{0});
  EXPECT_EQ(values.repr(object, "ReduceOp"), "<ReduceOp>");
}

TEST(TorchValues, NameReduceOperations) {
  Values values;
  const RemoteAddress number = values.process.allocate(16);
  values.process.put(number, std::uint8_t{4});
  EXPECT_EQ(values.repr(values.bound(number), "torch._C._distributed_c10d.RedOpType"),
            "ReduceOp.MAX");
  const RemoteAddress operation = values.process.allocate(64);
  values.process.put(operation + values.layout->reduce_op, std::uint8_t{1});
  EXPECT_EQ(values.repr(values.bound(operation), "torch._C._distributed_c10d.ReduceOp"),
            "ReduceOp.AVG");
  values.process.put(number, std::uint8_t{200});
  EXPECT_EQ(values.repr(values.bound(number), "RedOpType"), "<ReduceOp>");
  EXPECT_EQ(values.repr(values.bound(kHuge), "RedOpType"), "<ReduceOp>");
  EXPECT_EQ(values.repr(kHuge, "RedOpType"), "<ReduceOp>");
}

TEST(TorchValues, LeaveOtherTypesAlone) {
  Values values;
  EXPECT_EQ(values.repr(values.tensor({1}, kFloat32), "dict"), "not mine");
  EXPECT_EQ(values.repr(1, "torch.Size"), "not mine");
}

/// A tensor whose storage holds `bytes` from its offset on.
struct Item {
  explicit Item(Values& values, std::span<const std::byte> bytes, std::uint16_t dtype,
                std::size_t behind = 16, std::int8_t device = 0)
      : object(values.tensor({1}, dtype)) {
    constexpr std::int64_t kOffset = 3;
    FakeProcess& process = values.process;
    storage = process.allocate(128);
    data = process.allocate(128);
    process.put(values.impl + behind, storage);
    process.put(values.impl + values.layout->shape + 88, kOffset);
    process.put(storage + behind, data);
    process.put(storage + behind + 24, device);
    process.put(storage + behind + 32, static_cast<std::int64_t>((kOffset + 1) * bytes.size()));
    process.write(data + kOffset * bytes.size(), bytes);
    process.put_type(values.impl, "N3c1010TensorImplE");
    process.put_type(storage, "N3c1011StorageImplE");
  }
  RemoteAddress object;
  RemoteAddress storage = 0;
  RemoteAddress data = 0;
};

template <typename T>
std::optional<TensorNumber> item_of(T value, std::uint16_t dtype, std::size_t behind = 16,
                                    std::int8_t device = 0) {
  Values values;
  const Item item(values, std::as_bytes(std::span(&value, 1)), dtype, behind, device);
  return tensor_item(values.objects, values.layouts, item.object, "Tensor");
}

TEST(TensorItem, IsTheNumberInATensorOfOneElement) {
  constexpr std::uint16_t kInt64 = 4;
  constexpr std::uint16_t kHalf = 5;
  constexpr std::uint16_t kBool = 11;
  EXPECT_EQ(item_of(2.5F, kFloat32), TensorNumber(2.5));
  EXPECT_EQ(item_of(2.5F, kFloat32, 24), TensorNumber(2.5));
  EXPECT_EQ(item_of(std::int64_t{-7}, kInt64), TensorNumber(std::int64_t{-7}));
  EXPECT_EQ(item_of(std::uint16_t{0x3C00}, kHalf), TensorNumber(1.0));
  EXPECT_EQ(item_of(std::uint16_t{0xC000}, kBfloat16), TensorNumber(-2.0));
  EXPECT_EQ(item_of(std::uint8_t{1}, kBool), TensorNumber(true));
}

TEST(TensorItem, IsAbsentWhereAnyOfItCannotBeProven) {
  constexpr std::uint16_t kComplex = 9;
  constexpr std::int8_t kCuda = 1;
  EXPECT_EQ(item_of(2.5F, kFloat32, 16, kCuda), std::nullopt);
  EXPECT_EQ(item_of(std::uint64_t{0}, kComplex), std::nullopt);
  const auto spoiled = [](const std::function<void(Values&, Item&)>& spoil) {
    Values values;
    const float value = 2.5F;
    Item item(values, std::as_bytes(std::span(&value, 1)), kFloat32);
    spoil(values, item);
    return tensor_item(values.objects, values.layouts, item.object, "Tensor");
  };
  EXPECT_NE(spoiled([](Values&, Item&) {}), std::nullopt);
  EXPECT_EQ(spoiled([](Values& values, Item& item) {
              values.process.put_type(item.storage, "N3c107StorageE");
            }),
            std::nullopt);
  EXPECT_EQ(spoiled([](Values& values, Item&) {
              values.process.put(values.impl + values.layout->shape + 88, std::int64_t{4});
            }),
            std::nullopt)
      << "behind the end of its storage";
  EXPECT_EQ(spoiled([](Values& values, Item&) {
              values.process.put(values.impl + values.layout->count, std::int64_t{2});
            }),
            std::nullopt);
  EXPECT_EQ(
      spoiled([](Values& values, Item& item) { values.process.put(item.storage + 16, kHuge); }),
      std::nullopt);
  Values values;
  EXPECT_EQ(tensor_item(values.objects, values.layouts, kHuge, "Tensor"), std::nullopt);
  EXPECT_EQ(tensor_item(values.objects, values.layouts, values.tensor({1}, kFloat32), "dict"),
            std::nullopt);
}

TEST(BoundValue, FollowsInstancesOfSeveralBases) {
  Values values;
  const RemoteAddress holders = values.process.allocate(16);
  values.process.put(holders, RemoteAddress{4711});
  EXPECT_EQ(bound_value(values.objects, values.bound(holders, 1)), 4711U);
  EXPECT_EQ(bound_value(values.objects, values.bound(holders, 3)), holders);
  EXPECT_FALSE(bound_value(values.objects, values.bound(0)).has_value());
}

TEST(TorchVersion, IsFoundInItsSource) {
  EXPECT_EQ(version_in_source("x\n__version__ = '2.13.0+cpu'\ndebug = False\n"), "2.13.0+cpu");
  EXPECT_EQ(version_in_source("__version__: str = \"1.13.1\""), "1.13.1");
  EXPECT_EQ(version_in_source("__version__ = '2.1"), "");
  EXPECT_EQ(version_in_source("__version__ = 2"), "");
  EXPECT_EQ(version_in_source(""), "");
}

}  // namespace
}  // namespace ddpdoctor::stacks
