// SPDX-License-Identifier: Apache-2.0
// The simulated devices of a job, in a process of their own: `device FOLDER SECONDS`. Each rank's
// file in the folder is its device. Kernels exchange messages without types or names, as NCCL's
// kernels do: the effects of ranks that disagree are not programmed, they follow from this. After
// SECONDS the ranks are killed, so that nothing spins forever.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "kernels.h"
#include "protocol.h"

namespace simulated {
namespace {

std::mutex everything;  // communicators, meetings and the list of ranks
std::map<std::uint64_t, std::shared_ptr<Communicator>> communicators;
std::map<std::uint64_t, std::vector<Meeting*>> met;
std::vector<Rank*> ranks;

std::shared_ptr<Communicator> communicator(std::uint64_t id) {
  const std::lock_guard lock(everything);
  auto& one = communicators[id];
  if (one == nullptr) {
    one = std::make_shared<Communicator>();
  }
  return one;
}

void wait_for_bell(std::atomic<std::uint32_t>& bell, std::uint32_t seen) {
  const timespec limit{.tv_sec = 0, .tv_nsec = 50'000'000};
  syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

/// Executes one stream, kernel after kernel, until the rank has exited.
void serve_stream(Rank* rank, Stream* stream) {
  std::uint64_t next = stream->done.load();
  while (!rank->gone) {
    const std::uint32_t seen = stream->bell.load();
    if (stream->launched.load() == next) {
      wait_for_bell(stream->bell, seen);
      continue;
    }
    std::vector<Command> together;
    const std::uint32_t count = stream->queue[next % kQueue].together + 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      together.push_back(stream->queue[(next + i) % kQueue]);
    }
    if (together.front().kind == Kind::kWaitFor) {
      const Stream& other = rank->device->streams[together.front().peer];
      while (!rank->gone && other.done.load() < together.front().count) {
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    } else {
      run(*rank, *communicator(together.front().communicator), together);
    }
    if (rank->gone) {
      return;
    }
    next += count;
    stream->done.store(next, std::memory_order_release);
  }
}

/// All ranks of a communicator have arrived: tells each its rank and size in the new one.
void answer(std::vector<Meeting*>& all) {
  for (Meeting* one : all) {
    one->new_rank = 0;
    one->new_size = 0;
    for (const Meeting* other : all) {
      const bool before =
          other->key < one->key || (other->key == one->key && other->rank < one->rank);
      if (other->color == one->color) {
        ++one->new_size;
        one->new_rank += before ? 1 : 0;
      }
    }
  }
  for (Meeting* one : all) {
    one->state.store(2, std::memory_order_release);
  }
}

void serve_meetings(Rank& rank, std::set<const Meeting*>& seen) {
  for (Meeting& one : rank.device->meetings) {
    if (one.state.load(std::memory_order_acquire) != 1 || !seen.insert(&one).second) {
      continue;
    }
    auto& all = met[one.communicator];
    all.push_back(&one);
    if (all.size() == static_cast<std::size_t>(one.size)) {
      answer(all);
      met.erase(one.communicator);
    }
  }
}

bool has_ended(const Rank& rank) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", rank.pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  char text[512];
  const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) {
    close(fd);
  }
  if (size <= 0) {
    return true;
  }
  text[size] = 0;
  const char* const end = std::strrchr(text, ')');
  return end == nullptr || end[2] == 'Z' || end[2] == 'X';
}

/// Accepts ranks whose files have appeared in the folder.
void welcome(const std::string& folder, std::set<std::string>& known) {
  DIR* const all = opendir(folder.c_str());
  if (all == nullptr) {
    return;
  }
  while (const dirent* entry = readdir(all)) {
    const std::string name = entry->d_name;
    if (!name.ends_with(".rank") || !known.insert(name).second) {
      continue;
    }
    const int fd = open((folder + "/" + name).c_str(), O_RDWR | O_CLOEXEC);
    void* const memory =
        fd < 0 ? MAP_FAILED
               : mmap(nullptr, sizeof(Device), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) {
      close(fd);
    }
    if (memory == MAP_FAILED) {
      continue;
    }
    auto* const rank = new Rank;  // lives until the end of the job
    rank->device = static_cast<Device*>(memory);
    rank->pid = rank->device->pid;
    ranks.push_back(rank);
  }
  closedir(all);
}

}  // namespace
}  // namespace simulated

int main(int count, char** arguments) {
  using namespace simulated;
  if (count < 3) {
    return 2;
  }
  const std::string folder = arguments[1];
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(arguments[2]));
  std::set<std::string> known;
  std::set<const Meeting*> meetings;
  std::set<const Stream*> served;
  const pid_t starter = getppid();
  while (std::chrono::steady_clock::now() < end && getppid() == starter) {
    welcome(folder, known);
    for (Rank* rank : ranks) {
      rank->gone = rank->gone || has_ended(*rank);
      if (rank->gone) {
        continue;
      }
      serve_meetings(*rank, meetings);
      for (Stream& stream : rank->device->streams) {
        if (stream.used.load() != 0 && served.insert(&stream).second) {
          std::thread(serve_stream, rank, &stream).detach();
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (int late = 0; late < 600; ++late) {  // ranks that start now are too late
    welcome(folder, known);
    for (const Rank* rank : ranks) {
      if (!has_ended(*rank)) {
        kill(rank->pid, SIGKILL);
      }
    }
    if (getppid() != starter) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  _exit(0);
}
