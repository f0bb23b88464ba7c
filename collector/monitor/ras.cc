// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/ras.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>
#include <thread>
#include <unistd.h>

#include "collector/model/questions.h"
#include "collector/sources/files/descriptors.h"
#include "collector/sources/network/nccl_ras.h"
#include "collector/sources/network/sockets.h"

namespace ddpdoctor::monitor {
namespace {

/// True if a process of the job holds the listening socket that the question goes to: another job
/// of the machine may have taken the address first, and would answer for itself. RAS's thread has a
/// name of its own only with NCCL_SET_THREAD_NAME=1.
bool listens(const sources::RasQuestion& question, const model::Observation& now) {
  sources::TcpTable table;
  table.read(::getpid());  // the connection starts in this namespace
  int port = 0;
  std::from_chars(question.port.data(), question.port.data() + question.port.size(), port);
  const sources::TcpSocket* const listener =
      table.listener(question.host == "localhost" ? "127.0.0.1" : question.host, port);
  return listener != nullptr &&
         std::any_of(now.processes.begin(), now.processes.end(), [&](const auto& process) {
           const auto open = sources::descriptors_of(process.pid);
           return std::any_of(open.begin(), open.end(), [&](const sources::Descriptor& one) {
             return one.kind == sources::DescriptorKind::kSocket && one.inode == listener->inode;
           });
         });
}

/// RAS knows something new where torch's recorder shows no calls, or where ranks run elsewhere. The
/// second answer costs a second.
bool tells_more(const model::JobModel& job, const model::Observation& now) {
  const auto ranks = std::count_if(now.processes.begin(), now.processes.end(),
                                   [](const auto& process) { return process.rank.has_value(); });
  return job.collectives.empty() || ranks < job.world_size.value_or(0);
}

/// Where RAS of this job listens; one of its processes answers for all of them.
std::optional<sources::RasQuestion> question_to(const model::JobModel& job) {
  const model::Observation* const now = model::latest(job);
  if (now == nullptr || !tells_more(job, *now)) {
    return std::nullopt;
  }
  std::set<std::string> addresses;
  for (const model::Process& process : now->processes) {
    const auto address = process.environment.find("NCCL_RAS_ADDR");
    addresses.insert(address == process.environment.end() ? "" : address->second);
  }
  for (const std::string& address : addresses) {
    sources::RasQuestion question = sources::ras_question(address);
    if (listens(question, *now)) {
      return question;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> two_ras_answers(model::JobModel& job) {
  const auto question = question_to(job);
  if (!question) {
    return {};
  }
  std::vector<std::string> answers;
  for (int look = 0; look < 2; ++look) {
    if (look > 0) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    auto answer = sources::ask_ras(*question);
    if (!answer) {
      job.coverage.warnings.push_back(answer.error().what);
      return {};
    }
    answers.push_back(std::move(*answer));
  }
  return answers;
}

}  // namespace ddpdoctor::monitor
