#include "headwise/models/decoder.hpp"

#include <cmath>
#include <limits>
#include <set>

#include "headwise/core/memory.hpp"
#include "headwise/ops/op_table.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"
#include "support/numbers.hpp"

using namespace headwise;
using namespace headwise::test;
using test::infer;
using test::random_ids;
using test::relative_gap;
using test::rough_decoder;
using test::same_bits;

namespace {

const ModelConfig kSmall{.vocab = 16, .layers = 2, .heads = 2, .width = 8, .context = 8};

ModelConfig with(auto change) {
  ModelConfig config = kSmall;
  change(config);
  return config;
}

/// What building a decoder of this config says. It must not get as far as a tensor.
std::string refusal(const ModelConfig& config) {
  Rng rng(1);
  const std::size_t before = memory_stats().live_buffers;
  const std::size_t large = memory_stats().large_allocations;
  const std::string message =
      test::message_of<UsageError>([&] { const Decoder<float> d(config, rng); });
  CHECK(memory_stats().live_buffers == before);
  CHECK(memory_stats().large_allocations == large);
  CHECK(rng.position() == 0);
  return message;
}

struct Statistics {
  double mean = 0, std = 0;
};

Statistics statistics(const Tensor<float>& x) {
  double sum = 0, squares = 0;
  for (const float v : x.values()) sum += v, squares += static_cast<double>(v) * v;
  const double n = static_cast<double>(x.size()), mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean)};
}

}  // namespace

TEST_CASE("heads that do not divide the width are refused by both numbers", "[models][errors]") {
  CHECK(refusal(with([](auto& c) { c.heads = 3, c.width = 10; })) ==
        "heads: must divide width 10, got 3");
  CHECK(refusal(with([](auto& c) { c.heads = 3, c.width = c.vocab = c.context = 1 << 24; })) ==
        "heads: must divide width 16777216, got 3");
}

TEST_CASE("no heads and no width are refused by both options and numbers", "[models][errors]") {
  const auto message = [](Index heads, Index width) {
    return refusal(with([&](auto& c) { c.heads = heads, c.width = width; }));
  };
  CHECK(message(0, 10) == "heads: must be in [1, 16777216], got 0");
  CHECK(message(-1, 10) == "heads: must be in [1, 16777216], got -1");
  CHECK(message(4, 0) == "width: must be in [1, 16777216], got 0");
}

TEST_CASE("a model that cannot be is refused by option and value", "[models][errors]") {
  CHECK(refusal(with([](auto& c) { c.vocab = 0; })) == "vocab: must be in [1, 16777216], got 0");
  CHECK(refusal(with([](auto& c) { c.layers = 0; })) == "layers: must be in [1, 16777216], got 0");
  CHECK(refusal(with([](auto& c) { c.context = -8; })) ==
        "context: must be in [1, 16777216], got -8");
  CHECK(refusal(with([](auto& c) { c.width = Index{1} << 40; })) ==
        "width: must be in [1, 16777216], got 1099511627776");
  CHECK(refusal(with([](auto& c) { c.dropout = 1; })) == "dropout: must be in [0, 1), got 1");
  CHECK(refusal(with([](auto& c) { c.dropout = -0.5; })) == "dropout: must be in [0, 1), got -0.5");
  CHECK(refusal(with([](auto& c) { c.dropout = kNaN; })) == "dropout: must be in [0, 1), got nan");
  CHECK(refusal(with([](auto& c) { c.init_std = 0; })) ==
        "init-std: must be finite and > 0, got 0");
  CHECK(refusal(with([](auto& c) { c.init_std = kNaN; })) ==
        "init-std: must be finite and > 0, got nan");
}

TEST_CASE("more tokens than the context are refused by both numbers", "[models][errors]") {
  const auto model = rough_decoder<float>(kSmall, 1);
  CHECK_THROWS_WITH(infer(model, random_ids({1, 9}, 16, 1)),
                    "decoder: 9 tokens do not fit the context of 8");
  CHECK_THROWS_AS(infer(model, random_ids({1, 9}, 16, 1)), ShapeError);
  CHECK_THROWS_WITH(infer(model, random_ids({1, 0}, 16, 1)),
                    "decoder: 0 tokens do not fit the context of 8");
  CHECK_THROWS_WITH(infer(model, random_ids({8}, 16, 1)), "decoder: ids (8) are not (B,T)");
  CHECK(infer(model, random_ids({3, 8}, 16, 1)).shape() == Shape{3, 8, 16});
  CHECK(infer(model, random_ids({3, 1}, 16, 1)).shape() == Shape{3, 1, 16});
}

TEST_CASE("an id outside the vocabulary is refused by id and place and range", "[models][errors]") {
  const test::OneThread quick;
  auto model = rough_decoder<float>(kSmall, 1);
  const Ids good = random_ids({2, 8}, 16, 2);
  const Tensor<float> before = infer(model, good);
  for (const Id bad : {-1, 16, 2000000000}) {
    Ids ids = good;
    ids.values[11] = bad;
    CHECK_THROWS_WITH(infer(model, ids),
                      fmt::format("embedding: id {} at position 11 is not in [0, 15]", bad));
    CHECK_THROWS_WITH(
        test::run_pass(model, {good, ids}),
        fmt::format("cross_entropy: label {} at position 11 is neither in [0, 15] nor -100 "
                    "(ignore)",
                    bad));
  }
  CHECK(same_bits(infer(model, good), before));
}

TEST_CASE("weights start as GPT-2's do", "[models]") {
  Rng rng(5);
  Decoder<float> model(
      {.vocab = 200, .layers = 8, .heads = 2, .width = 64, .context = 64, .tie = false}, rng);
  for_each_param(model, [](const std::string& name, const Param<float>& p) {
    CAPTURE(name);
    const auto [mean, std] = statistics(p.value);
    if (name.ends_with("bias")) {
      CHECK(same_bits(p.value, Tensor<float>::zeros(p.value.shape())));
    } else if (p.value.shape().rank() == 1) {
      CHECK(same_bits(p.value, Tensor<float>::full(p.value.shape(), 1)));
    } else {
      const bool residual = name.ends_with("w_o.weight") || name.ends_with("down.weight");
      const double expected = residual ? 0.02 / 4 : 0.02;  // sqrt(2L) = 4
      const double n = static_cast<double>(p.value.size());
      CHECK(std::fabs(std / expected - 1) < 5 / std::sqrt(2 * n));
      CHECK(std::fabs(mean) < 5 * expected / std::sqrt(n));
    }
  });
}

TEST_CASE("init-std sets the scale and the seed the numbers", "[models]") {
  const auto weights = [](double std, std::uint64_t seed) {
    Rng rng(seed);
    Decoder<float> model(with([&](auto& c) { c.init_std = std; }), rng);
    return test::weights_of(model);
  };
  const auto small = weights(0.02, 1), wide = weights(0.5, 1);
  CHECK(same_bits(small, weights(0.02, 1)));
  CHECK_FALSE(same_bits(small, weights(0.02, 2)));
  for (const char* name : {"tok.weight", "pos.weight", "blocks.1.attn.w_o.weight"})
    CHECK(statistics(wide.at(name)).std ==
          Approx(25 * statistics(small.at(name)).std).epsilon(1e-5));
}

TEST_CASE("GPT-2 small has its published number of parameters", "[models]") {
  // The count is linear in V, T and L, so the whole follows from models that are small in them.
  const auto count = [](Index v, Index t, Index l, bool tie) {
    Rng rng(1);
    Decoder<float> model(
        {.vocab = v, .layers = l, .heads = 12, .width = 768, .context = t, .tie = tie}, rng);
    return parameter_count(model);
  };
  const Index one = count(1, 1, 1, true);
  const Index token = count(2, 1, 1, true) - one, place = count(1, 2, 1, true) - one;
  const Index layer = count(1, 1, 2, true) - one, head = count(2, 1, 1, false) - one - token;
  CHECK(one + 50256 * token + 1023 * place + 11 * layer == 124439808);
  CHECK(head == 2 * 768);  // two rows: 50257 of them are 38597376
  CHECK(50257 * (head / 2) == 38597376);
}

TEST_CASE("without a random stream nothing is dropped", "[models]") {
  const test::OneThread quick;
  const Ids ids = random_ids({3, 8}, 16, 2);
  Rng a(1), b(1);
  const Decoder<float> dropping(with([](auto& c) { c.dropout = 0.8; }), a);
  const Decoder<float> plain(kSmall, b);
  const Tensor<float> once = infer(dropping, ids);
  CHECK(same_bits(once, infer(dropping, ids)));
  CHECK(same_bits(once, infer(plain, ids)));
  Rng random(1);
  CHECK_FALSE(same_bits(once, dropping(Ctx<float>{.random = &random}, ids).value()));
}

TEST_CASE("the same random stream drops the same and another one others", "[models]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(with([](auto& c) { c.dropout = 0.3; }), 1);
  const auto logits = [&](std::uint64_t seed) {
    Rng random(seed);
    return model(Ctx<float>{.random = &random}, random_ids({3, 8}, 16, 2)).value();
  };
  CHECK(same_bits(logits(1), logits(1)));
  CHECK_FALSE(same_bits(logits(1), logits(2)));
}

TEST_CASE("a later token changes nothing before it", "[models]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kSmall, 1);
  Ids ids = random_ids({1, 8}, 16, 2);
  const Tensor<float> before = infer(model, ids);
  ids.values[5] = (ids.values[5] + 1) % 16;
  const Tensor<float> after = infer(model, ids);
  const auto differs = [&](Index t) {
    return !std::equal(before.data() + t * 16, before.data() + (t + 1) * 16, after.data() + t * 16);
  };
  for (Index t = 0; t < 8; ++t) CHECK(differs(t) == (t >= 5));
}

TEST_CASE("a decoder step records only ops that have a gradient check", "[models]") {
  const test::OneThread quick;
  std::set<std::string> checked{"leaf", "param"};
  for (const OpSpec& spec : op_table()) checked.insert(spec.name);
  for (const bool tie : {true, false}) {
    auto model = rough_decoder<float>(with([&](auto& c) { c.dropout = 0.1, c.tie = tie; }), 1);
    Rng random(1);
    const Batch batch{random_ids({2, 8}, 16, 2), random_ids({2, 8}, 16, 3)};
    const auto ops = test::run_pass<float>(model, batch, nullptr, &random).ops;
    CHECK(ops.size() > 40);
    CHECK(ops.back() == "cross_entropy");
    for (const std::string& op : ops) {
      CAPTURE(op);
      CHECK(checked.contains(op));
    }
  }
}
