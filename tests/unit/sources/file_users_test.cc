// SPDX-License-Identifier: Apache-2.0
// Which processes use a file, checked on this process in /proc.
#include "collector/sources/files/file_users.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace ddpdoctor::sources {
namespace {

constexpr std::size_t kPage = 4096;

/// Every second page has another protection: each is a line of its own in /proc/self/maps.
class ManyMappings {
 public:
  ManyMappings() : memory_(::mmap(nullptr, kPages * kPage, PROT_READ, kAnonymous, -1, 0)) {
    for (std::size_t page = 0; memory_ != MAP_FAILED && page < kPages; page += 2) {
      ::mprotect(static_cast<std::byte*>(memory_) + page * kPage, kPage, PROT_NONE);
    }
  }
  ManyMappings(const ManyMappings&) = delete;
  ManyMappings& operator=(const ManyMappings&) = delete;
  ~ManyMappings() {
    ::munmap(memory_, kPages * kPage);
  }

 private:
  static constexpr std::size_t kPages = 12'000;  // the kernel writes half a megabyte about them
  static constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  void* memory_;
};

TEST(FileUsers, FindsAMappingAmongThousands) {
  std::string path = std::filesystem::temp_directory_path() / "ddpdoctor_usersXXXXXX";
  const int descriptor = ::mkstemp(path.data());
  ASSERT_EQ(::ftruncate(descriptor, kPage), 0);
  WantedFile file;
  ASSERT_TRUE(look_at(path, file));
  void* mapped = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, descriptor, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  ::close(descriptor);
  {
    const ManyMappings others;
    const FileUsers found = users_of_files({file});
    ASSERT_TRUE(found.users.contains(file.id));
    EXPECT_TRUE(found.users.at(file.id).contains(::getpid()));
  }
  ::munmap(mapped, kPage);
  ::unlink(path.c_str());
  EXPECT_FALSE(users_of_files({file}).users.contains(file.id));
}

}  // namespace
}  // namespace ddpdoctor::sources
