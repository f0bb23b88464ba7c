// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/python_source/source_text.h"

namespace ddpdoctor::python_source {
namespace {

struct Case {
  const char* expression;
  Dependence expected;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.expression;
}

class NamesSpeak : public testing::TestWithParam<Case> {};

TEST_P(NamesSpeak, WithoutAnySource) {
  EXPECT_EQ(dependence(GetParam().expression, {}, 1), GetParam().expected);
}

constexpr auto kRank = Dependence::kRank;
constexpr auto kData = Dependence::kData;
constexpr auto kNone = Dependence::kNone;

INSTANTIATE_TEST_SUITE_P(
    Rank, NamesSpeak,
    testing::Values(
        Case{"rank == 0", kRank}, Case{"not self.local_rank", kRank},
        Case{"dist.get_rank() == 0", kRank}, Case{"torch.distributed.get_rank(group) != 0", kRank},
        Case{"accelerator.is_main_process", kRank}, Case{"self.acc.is_last_process", kRank},
        Case{"trainer.is_global_zero", kRank},
        Case{"self.accelerator.is_local_main_process and step % 10 == 0", kRank},
        Case{"os.environ[\"RANK\"] == '0'", kRank},
        Case{"int(os.environ.get('LOCAL_RANK', 0)) == 0", kRank},
        Case{"os.getenv('SLURM_PROCID') == '0'", kRank}, Case{"is_main_process()", kRank},
        Case{"utils.is_master(args)", kRank}, Case{"args.rank % ngpus_per_node == 0", kRank},
        Case{"args.gpu == 0", kRank}, Case{"isMaster", kRank}, Case{"IS_MASTER", kRank},
        Case{"xm.is_master_ordinal()", kRank}, Case{"state.process_index == 0", kRank},
        Case{"ddp_local_rank in [-1, 0]", kRank}, Case{"mpu.get_data_parallel_rank() == 0", kRank},
        Case{"range(10 + rank)", kRank}, Case{"is_rank_zero", kRank}, Case{"is_rank0()", kRank},
        Case{"loss < 3 or self.trainer.is_world_process_zero()", kRank}));

INSTANTIATE_TEST_SUITE_P(
    Data, NamesSpeak,
    testing::Values(Case{"loss.item() < best", kData}, Case{"os.path.exists(path)", kData},
                    Case{"len(batch) < 4", kData}, Case{"epoch % 5 == 0", kData},
                    Case{"lora_rank > 4", kData}, Case{"torch.linalg.matrix_rank(x) == 3", kData},
                    Case{"self.low_rank", kData}, Case{"ranking[0] > 1", kData},
                    Case{"is_main_thread", kData}, Case{"args.gpu", kData},
                    Case{"use_master_weights", kData}, Case{"is_master_weight", kData},
                    Case{"not alive.any()", kData}, Case{"done.all()", kData}));

INSTANTIATE_TEST_SUITE_P(
    Uniform, NamesSpeak,
    testing::Values(Case{"True", kNone}, Case{"", kNone}, Case{"1 + 1 == 2", kNone},
                    Case{"world_size > 1", kNone}, Case{"dist.is_initialized()", kNone},
                    Case{"__name__ == \"__main__\"", kNone}, Case{"range(100)", kNone},
                    Case{"rank is not None", kNone}, Case{"args.local_rank != -1", kNone},
                    Case{"local_rank >= 0", kNone}, Case{"'RANK' in os.environ", kNone},
                    Case{"int(os.environ.get('RANK', -1)) != -1", kNone},
                    Case{"torch.cuda.is_available()", kNone}, Case{"any([True])", kNone},
                    Case{"torch.all(True)", kNone}));

struct Followed {
  const char* source;
  const char* condition;
  Dependence expected;
};

void PrintTo(const Followed& c, std::ostream* out) {
  *out << c.source << " ?? " << c.condition;
}

class NamesAreFollowed : public testing::TestWithParam<Followed> {};

TEST_P(NamesAreFollowed, ThroughTheFile) {
  const Lines lines = lines_of(GetParam().source);
  EXPECT_EQ(dependence(GetParam().condition, lines, line_with(lines, "HERE")), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Assignments, NamesAreFollowed,
    testing::Values(
        Followed{"def f():\n    first = rank == 0\n    if first:  # HERE\n        pass", "first",
                 kRank},
        Followed{"chosen = dist.get_rank() == 0\nverbose = chosen\ndef f():\n    g()  # HERE",
                 "verbose", kRank},
        Followed{"def f(chosen):\n    g()  # HERE", "chosen", kData},
        Followed{"class T:\n    def __init__(self, r):\n        self.writes = self.rank == 0\n"
                 "    def f(self):\n        g()  # HERE",
                 "self.writes", kRank},
        Followed{"def writes():\n    return dist.get_rank() == 0\ndef f():\n    g()  # HERE",
                 "writes()", kRank},
        Followed{"class T:\n    @property\n    def writes(self):\n        return self.rank == 0\n"
                 "    def f(self):\n        g()  # HERE",
                 "self.writes", kRank},
        Followed{"def f(x):\n    loss = x + 0.3 * rank\n    g()  # HERE", "loss > 1", kData},
        Followed{"def f(x):\n    if rank == 1:\n        x = []\n    g()  # HERE", "x", kData},
        Followed{"def f(x):\n    mine = rank == 1 and x\n    g()  # HERE", "mine", kRank},
        Followed{"def f():\n    a, b = rank == 0, 3\n    g()  # HERE", "a", kRank},
        Followed{"def f():\n    a, b = rank == 0, 3\n    g()  # HERE", "b", kNone},
        Followed{"def f():\n    if (mine := rank + 1) > 2:\n        g()  # HERE", "mine", kRank},
        Followed{"DEBUG = False\ndef f():\n    g()  # HERE", "DEBUG", kNone},
        Followed{"def f():\n    for i in range(3 + rank):\n        g()  # HERE", "i", kRank},
        Followed{"def f():\n    stop: bool = loss < 1\n    g()  # HERE", "stop", kData},
        Followed{"def f():\n    n = 3\n    n += rank\n    g()  # HERE", "n == 4", kRank}));

INSTANTIATE_TEST_SUITE_P(
    Guards, NamesAreFollowed,
    testing::Values(
        Followed{
            "def f():\n    stop = False\n    if rank == 0:\n        stop = True\n    g()  # HERE",
            "stop", kRank},
        Followed{
            "def f():\n    stop = False\n    if loss < 3:\n        stop = True\n    g()  # HERE",
            "stop", kData},
        Followed{"def f():\n    if rank == 0:\n        n = 3\n        g()  # HERE", "n", kNone},
        Followed{
            "def f():\n    if rank == 0:\n        n = 1\n    else:\n        n = 2\n    g()  # HERE",
            "n", kRank}));

TEST(Dependence, EndsOnCirclesAndOnManyNames) {
  const Lines circle = lines_of("a = b\nb = a\nc()  # HERE");
  EXPECT_EQ(dependence("a", circle, 3), kNone);
  std::string many;
  std::string sum = "x0";
  for (int i = 0; i < 400; ++i) {
    many += "x" + std::to_string(i) + " = x" + std::to_string(i + 1) + " + y\n";
    sum += " + x" + std::to_string(i);
  }
  EXPECT_EQ(dependence(sum, lines_of(many), 1), kData);
}

}  // namespace
}  // namespace ddpdoctor::python_source
