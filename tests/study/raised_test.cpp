#include "headwise/study/raised.hpp"

#include "headwise/study/recording.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/models.hpp"

using namespace headwise;
using namespace headwise::study;

namespace {

/// Six tokens with nothing in common, and two heads: W_O copies what head 0 moves to three columns,
/// and head 1 writes the negative of the same.
Decoder<double> apart() {
  Rng rng(1);
  Decoder<double> model(
      {.vocab = 6, .layers = 1, .heads = 2, .width = 6, .context = 4, .attention_only = true}, rng);
  Tensor<double> tokens = Tensor<double>::zeros({6, 6}), o = tokens;
  for (Index i = 0; i < 6; ++i) tokens.data()[i * 7] = 1;
  for (Index i = 0; i < 3; ++i) o.data()[i * 7] = 1, o.data()[i * 7 + 3] = -1;
  model.tok.weight.value = tokens;
  model.blocks[0].attn.w_o.weight.value = o;
  return model;
}

}  // namespace

TEST_CASE("a head that writes what it attends to raises that token alone", "[study]") {
  const Ids ids({1, 4}, {2, 5, 0, 2});
  // Both heads: query 0 on key 0, 1 on 0, 2 on 2, 3 on both of token 2 alike. Each moves the unit
  // vector of what it attends to, but for query 1, which moves nothing.
  const Tensor<double> pattern({1, 2, 4, 4},
                               {1, 0, 0, 0, 1, 0, 0, 0, .2, .2, .6, 0, .4, .2, 0, .4,  //
                                1, 0, 0, 0, 1, 0, 0, 0, .2, .2, .6, 0, .4, .2, 0, .4});
  const Tensor<double> z({1, 4, 6}, {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0,  //
                                     1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1});
  const auto heads = raised_tokens(apart(), 0, ids, pattern, z);
  REQUIRE(heads.size() == 2);
  for (const auto& sequences : heads) {
    REQUIRE(sequences.size() == 1);
    CHECK(sequences[0].tokens == std::vector<Id>{0, 2, 5});
    CHECK(sequences[0].attended == std::vector<Index>{1, 1, 0, 1});
  }
  // Head 0 raises the one attended to, head 1 the two others of the sequence, alike.
  const Tensor<double> copied({4, 3}, {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0});
  const Tensor<double> avoided({4, 3}, {.5, 0, .5, 0, 0, 0, 0, .5, .5, .5, 0, .5});
  CHECK(test::relative_gap(heads[0][0].shares, copied) < 1e-15);
  CHECK(test::relative_gap(heads[1][0].shares, avoided) < 1e-15);
}

TEST_CASE("shares of raised tokens add up to 1", "[study]") {
  const ModelConfig config{.vocab = 30, .layers = 2, .heads = 2, .width = 8, .context = 12};
  const Decoder<float> model = test::rough_decoder<float>(config, 2);
  const Ids ids = test::random_ids({3, 12}, 30, 3);
  Recording<float> seen({"blocks.1.attn.pattern", "blocks.1.attn.z"});
  model({.probe = &seen}, ids);
  const auto heads =
      raised_tokens(model, 1, ids, seen["blocks.1.attn.pattern"], seen["blocks.1.attn.z"]);
  for (const auto& sequences : heads)
    for (const Raised& one : sequences) {
      const auto n = one.tokens.size();
      for (std::size_t i = 0; i < 12; ++i) {
        double sum = 0;
        for (const double share : one.shares.values().subspan(i * n, n)) {
          CHECK(share >= 0);
          sum += share;
        }
        CHECK((sum == 0 || sum == Approx(1).epsilon(1e-12)));
      }
    }
}

TEST_CASE("raised tokens refuse what does not fit", "[study][errors]") {
  const Ids ids({1, 2}, {2, 5});
  const auto zeros = [](const Shape& shape) { return Tensor<double>::zeros(shape); };
  CHECK(test::message_of<ShapeError>([&] {
          raised_tokens(apart(), 1, ids, zeros({1, 2, 2, 2}), zeros({1, 2, 6}));
        }) == "raised_tokens: no layer 1, of 1 layers");
  CHECK(test::message_of<ShapeError>([&] {
          raised_tokens(apart(), 0, ids, zeros({1, 2, 2, 2}), zeros({1, 3, 6}));
        }) ==
        "raised_tokens: ids (1,2), pattern (1,2,2,2) and z (1,3,6) do not fit 2 heads of width 3");
  const Index lengths[] = {3};
  CHECK(test::message_of<ShapeError>([&] {
          raised_tokens(apart(), 0, ids, zeros({1, 2, 2, 2}), zeros({1, 2, 6}), lengths);
        }) == "raised_tokens: a length of 3, not 1 to 2");
}
