// What weights say, against NumPy: see golden/README.md and golden/study_golden.py.
#include "headwise/study/circuits.hpp"
#include "headwise/study/composition.hpp"
#include "headwise/study/raised.hpp"
#include "headwise/study/recording.hpp"
#include "headwise/study/value_norms.hpp"
#include "support/golden.hpp"

using namespace headwise;
using namespace headwise::study;
using test::relative_gap;

namespace {

template <Real T>
constexpr double kTolerance = std::is_same_v<T, float> ? 1e-5 : 1e-10;

/// A golden decoder, its numbers, and what its attention showed of the golden inputs.
template <Real T>
struct Studied {
  Decoder<T> model;
  Ids ids;
  TensorFile expected;
  Recording<T> seen;

  explicit Studied(const std::string& name)
      : model(test::Golden<T>("decoder_" + name).decoder()),
        ids(test::Golden<T>("decoder_" + name).batch().inputs),
        expected(HEADWISE_GOLDEN "/study_" + name + ".safetensors"),
        seen({"blocks.0.attn.pattern", "blocks.0.attn.v", "blocks.0.attn.z",
              "blocks.1.attn.pattern", "blocks.1.attn.v", "blocks.1.attn.z"}) {
    model({.probe = &seen}, ids);
  }
  [[nodiscard]] Tensor<double> golden(const std::string& what) const {
    return expected.tensor<double>(what);
  }
};

template <Real T>
void check_composition(const Studied<T>& of) {
  const Tensor<double> expected = of.golden("composition");  // (3, to, from)
  const std::vector<Composition> pairs = composition(of.model);
  CHECK(pairs.size() == 4);
  for (const Composition& pair : pairs) {
    const auto at = [](HeadId head) { return 2 * head.layer + head.head; };
    const double* ratio = expected.data() + at(pair.to) * 4 + at(pair.from);
    CHECK(pair.q == Approx(ratio[0]).epsilon(kTolerance<T>));
    CHECK(pair.k == Approx(ratio[16]).epsilon(kTolerance<T>));
    CHECK(pair.v == Approx(ratio[32]).epsilon(kTolerance<T>));
  }
}

template <Real T>
void check_circuits(const Studied<T>& of) {
  const Tensor<double> ov = of.golden("ov_positivity"), qk = of.golden("qk_positivity");
  const std::vector<Circuits> heads = circuits(of.model);
  REQUIRE(heads.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(heads[i].ov.size() == 8);
    CHECK(positivity(heads[i].ov) == Approx(ov.data()[i]).epsilon(0).margin(kTolerance<T>));
    CHECK(positivity(heads[i].qk) == Approx(qk.data()[i]).epsilon(0).margin(kTolerance<T>));
  }
}

template <Real T>
void check_top_copying(const Studied<T>& of) {
  const Tensor<T> effective = effective_embedding(of.model);
  CHECK(relative_gap(effective, of.golden("effective_embedding")) <= kTolerance<T>);
  const std::pair<std::string, Tensor<T>> embeddings[] = {
      {"top_copying", of.model.tok.weight.value}, {"top_copying_effective", effective}};
  for (const auto& [name, embedding] : embeddings) {
    const Tensor<double> expected = of.golden(name);  // (heads, 2)
    const std::vector<TopCopying> heads = top_copying(of.model, embedding);
    REQUIRE(heads.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(heads[i].top1 == Approx(expected.data()[2 * i]).epsilon(1e-12));
      CHECK(heads[i].top5 == Approx(expected.data()[2 * i + 1]).epsilon(1e-12));
    }
  }
}

template <Real T>
void check_norms(const Studied<T>& of) {
  for (Index layer = 0; layer < 2; ++layer) {
    const auto& attn = of.model.blocks[static_cast<std::size_t>(layer)].attn;
    const Tensor<T>& v = of.seen[attention_name(layer, "v")];
    CHECK(relative_gap(value_norms(attn, v), of.golden(fmt::format("value_norms.{}", layer))) <=
          kTolerance<T>);
    CHECK(relative_gap(combined_norms(attn, of.seen[attention_name(layer, "pattern")], v),
                       of.golden(fmt::format("combined_norms.{}", layer))) <= kTolerance<T>);
  }
}

template <Real T>
void check_raised(const Studied<T>& of) {
  const Index time = of.ids.shape[1], vocab = of.model.config.vocab;
  for (Index layer = 0; layer < 2; ++layer) {
    const Tensor<double> expected = of.golden(fmt::format("raised.{}", layer)),  // (B,H,T,V)
        attended = of.golden(fmt::format("attended.{}", layer));                 // (B,H,T)
    const auto heads =
        raised_tokens(of.model, layer, of.ids, of.seen[attention_name(layer, "pattern")],
                      of.seen[attention_name(layer, "z")]);
    for (std::size_t h = 0; h < 2; ++h)
      for (std::size_t b = 0; b < 3; ++b) {
        const Raised& one = heads[h][b];
        const auto at = static_cast<Index>(b * 2 + h) * time;
        Tensor<double> whole = Tensor<double>::zeros({time, vocab});
        const auto n = static_cast<Index>(one.tokens.size());
        double* to = whole.data();
        for (Index i = 0; i < time * n; ++i)
          to[i / n * vocab + one.tokens[static_cast<std::size_t>(i % n)]] = one.shares.data()[i];
        const Tensor<double> golden(
            {time, vocab}, expected.values().subspan(static_cast<std::size_t>(at * vocab),
                                                     static_cast<std::size_t>(time * vocab)));
        CHECK(relative_gap(whole, golden) <= kTolerance<T>);
        for (Index i = 0; i < time; ++i)
          CHECK(one.tokens[static_cast<std::size_t>(one.attended[static_cast<std::size_t>(i)])] ==
                attended.data()[at + i]);
      }
  }
}

template <Real T>
void check_all(const std::string& name) {
  CAPTURE(name);
  const Studied<T> of(name);
  check_composition(of);
  check_circuits(of);
  check_top_copying(of);
  check_norms(of);
  check_raised(of);
}

}  // namespace

TEMPLATE_TEST_CASE("what weights say of a head is what NumPy says", "[study][golden]", float,
                   double) {
  const test::OneThread one;
  check_all<TestType>("tied");
  check_all<TestType>("untied");
}
