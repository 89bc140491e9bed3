// Watching a decoder, and reaching into it.
#include "support/catch.hpp"
#include "support/models.hpp"

using namespace headwise;
using test::infer;
using test::random_ids;
using test::replacing;
using test::rough_decoder;
using test::same_bits;

namespace {

const ModelConfig kProbed{.vocab = 11, .layers = 2, .heads = 4, .width = 16, .context = 8};
using Names = std::vector<std::string>;

Batch batch() { return {random_ids({3, 8}, 11, 1), random_ids({3, 8}, 11, 2)}; }

/// A probe that may be asked but never called.
struct Indifferent : Probe<float> {
  mutable int asked = 0;
  int called = 0;
  [[nodiscard]] bool wants(std::string_view) const override { return ++asked, false; }
  Var<float> at(std::string_view, Var<float> x) override { return ++called, x; }
  bool pattern(std::string_view, Tensor<float>&) override { return ++called, false; }
};

/// Wants everything but what fused ops leave out when nobody looks.
template <Real T>
struct Modest : test::Recorder<T> {
  [[nodiscard]] bool wants(std::string_view name) const override {
    return !name.ends_with(".mlp.hidden") && !name.ends_with(".resid_mid");
  }
};

/// x (B,T,C) with the columns of one head zeroed.
template <Real T>
Var<T> without_head(const Var<T>& x, Index head, Index d) {
  Tensor<T> keep = Tensor<T>::full({x.shape().last()}, 1);
  std::fill_n(keep.data() + head * d, d, T(0));
  return x * Var<T>(keep);
}

}  // namespace

TEST_CASE("a decoder offers these activations in this order", "[models][probe]") {
  const test::OneThread quick;
  auto model = rough_decoder<float>(kProbed, 1);
  test::Recorder<float> probe;
  infer(model, batch().inputs, &probe);
  const auto block = [](const std::string& b) {
    return Names{b + "resid_pre",    b + "attn.q",     b + "attn.k",   b + "attn.v",
                 b + "attn.pattern", b + "attn.z",     b + "attn.out", b + "resid_mid",
                 b + "mlp.pre",      b + "mlp.hidden", b + "mlp.out",  b + "resid_post"};
  };
  Names expected{"embed"};
  for (const char* b : {"blocks.0.", "blocks.1."})
    for (const std::string& name : block(b)) expected.push_back(name);
  expected.insert(expected.end(), {"final", "logits"});
  // Some are asked for once more, before what nobody wants to see is left out.
  probe.asked.erase(std::unique(probe.asked.begin(), probe.asked.end()), probe.asked.end());
  CHECK(probe.asked == expected);
  for (const std::string& name : expected) CHECK(probe.seen.contains(name));
  CHECK(probe.seen.size() == expected.size());
}

TEST_CASE("an attention-only decoder offers no activation of an MLP", "[models][probe]") {
  const test::OneThread quick;
  ModelConfig config = kProbed;
  config.layers = 1;
  config.attention_only = true;
  const auto model = rough_decoder<float>(config, 1);
  test::Recorder<float> probe;
  infer(model, batch().inputs, &probe);
  CHECK(probe.asked == Names{"embed", "blocks.0.resid_pre", "blocks.0.attn.q", "blocks.0.attn.k",
                             "blocks.0.attn.v", "blocks.0.attn.pattern", "blocks.0.attn.z",
                             "blocks.0.attn.out", "blocks.0.resid_post", "final", "logits"});
}

TEST_CASE("what a probe captures is what its name says", "[models][probe]") {
  const test::OneThread quick;
  auto model = rough_decoder<double>(kProbed, 1);
  test::Recorder<double> probe;
  const Tensor<double> logits = infer(model, batch().inputs, &probe);
  const auto seen = [&](const std::string& name) { return Var<double>(probe.seen.at(name)); };
  const auto gap = [](const Var<double>& a, const Var<double>& b) {
    return test::relative_gap(a.value(), b.value());
  };
  const Block<double>& block = model.blocks[1];
  const Ctx<double> off;
  CHECK(seen("blocks.0.attn.pattern").shape() == Shape{3, 4, 8, 8});
  CHECK(gap(seen("embed"), seen("blocks.0.resid_pre")) == 0);
  CHECK(gap(seen("blocks.0.resid_post"), seen("blocks.1.resid_pre")) == 0);
  const Var<double> x = block.ln1(off, seen("blocks.1.resid_pre"));
  CHECK(gap(seen("blocks.1.attn.q"), block.attn.w_q(off, x)) < 1e-14);
  CHECK(gap(seen("blocks.1.attn.k"), block.attn.w_k(off, x)) < 1e-14);
  CHECK(gap(seen("blocks.1.attn.v"), block.attn.w_v(off, x)) < 1e-14);
  CHECK(gap(seen("blocks.1.attn.out"), block.attn.w_o(off, seen("blocks.1.attn.z"))) < 1e-14);
  CHECK(gap(seen("blocks.1.resid_mid"), seen("blocks.1.resid_pre") + seen("blocks.1.attn.out")) <
        1e-14);
  CHECK(gap(seen("blocks.1.mlp.pre"),
            block.mlp->up(off, (*block.ln2)(off, seen("blocks.1.resid_mid")))) < 1e-14);
  CHECK(gap(seen("blocks.1.mlp.hidden"), gelu(seen("blocks.1.mlp.pre"))) < 1e-14);
  CHECK(gap(seen("blocks.1.mlp.out"), block.mlp->down(off, seen("blocks.1.mlp.hidden"))) < 1e-14);
  CHECK(gap(seen("blocks.1.resid_post"), seen("blocks.1.resid_mid") + seen("blocks.1.mlp.out")) <
        1e-14);
  CHECK(gap(seen("final"), model.ln_f(off, seen("blocks.1.resid_post"))) < 1e-14);
  CHECK(same_bits(probe.seen.at("logits"), logits));
}

TEST_CASE("captured patterns are causal and their rows sum to one in training too",
          "[models][probe]") {
  const test::OneThread quick;
  ModelConfig config = kProbed;
  config.dropout = 0.2;  // a pattern after dropout would hold 1.25 (case 11)
  auto model = rough_decoder<float>(config, 1);
  test::Recorder<float> probe;
  Rng random(1);
  test::run_pass<float>(model, batch(), &probe, &random);
  for (const char* name : {"blocks.0.attn.pattern", "blocks.1.attn.pattern"}) {
    const Tensor<float>& p = probe.seen.at(name);
    for (Index row = 0; row < p.shape().rows(); ++row) {
      const float* const at = p.data() + row * 8;
      const Index t = row % 8;
      double total = 0;
      for (Index s = 0; s <= t; ++s) total += static_cast<double>(at[s]);
      CHECK(total == Approx(1).margin(1e-6));
      CHECK(std::count(at + t + 1, at + 8, 0.0F) == 7 - t);
    }
  }
}

TEMPLATE_TEST_CASE("watching everything changes no bit", "[models][probe]", float, double) {
  const test::OneThread quick;
  ModelConfig config = kProbed;
  config.dropout = 0.1;
  auto model = rough_decoder<TestType>(config, 1);
  const auto pass = [&](Probe<TestType>* probe) {
    Rng random(1);
    return test::run_pass(model, batch(), probe, &random);
  };
  test::Recorder<TestType> probe;
  const auto plain = pass(nullptr), watched = pass(&probe);
  CHECK(same_bits(plain.logits, watched.logits));
  CHECK(plain.loss == watched.loss);
  CHECK(same_bits(plain.grads, watched.grads));

  Modest<TestType> modest;
  const auto mostly = pass(&modest);
  CHECK(modest.seen.size() == 27 - 4);
  CHECK(same_bits(plain.grads, mostly.grads));
  CHECK(plain.ops == mostly.ops);  // watched by nobody else, the same code ran
}

TEST_CASE("a probe that wants nothing is asked and never called", "[models][probe]") {
  const test::OneThread quick;
  auto model = rough_decoder<float>(kProbed, 1);
  Indifferent probe;
  const auto plain = test::run_pass<float>(model, batch());
  const auto watched = test::run_pass<float>(model, batch(), &probe);
  CHECK(probe.asked == 27);
  CHECK(probe.called == 0);
  CHECK(same_bits(plain.grads, watched.grads));
}

TEMPLATE_TEST_CASE("an activation replaced by itself changes no bit", "[models][probe]", float,
                   double) {
  const test::OneThread quick;
  auto model = rough_decoder<TestType>(kProbed, 1);
  const Tensor<TestType> plain = infer(model, batch().inputs);
  test::Recorder<TestType> all;
  infer(model, batch().inputs, &all);
  for (const std::string& name : all.asked) {
    CAPTURE(name);
    auto copy = replacing<TestType>(name, [&](const Var<TestType>& x) -> Var<TestType> {
      return Tensor<TestType>(x.shape(), x.value().values());  // equal, and not the same storage
    });
    CHECK(same_bits(infer(model, batch().inputs, &copy), plain));
  }
}

TEST_CASE("a replaced pattern is a constant to the query and key weights", "[models][probe]") {
  const test::OneThread quick;
  auto model = rough_decoder<double>(kProbed, 1);
  auto probe = replacing<double>("blocks.1.attn.pattern", [](const Var<double>& p) { return p; });
  const auto plain = test::run_pass<double>(model, batch());
  const auto pass = test::run_pass<double>(model, batch(), &probe);
  CHECK(same_bits(pass.logits, plain.logits));
  for (const char* part : {"w_q", "w_k"})
    CHECK(pass.grads.at(fmt::format("blocks.1.attn.{}.weight", part)).empty());
  for (const char* part : {"w_v", "w_o"}) {
    const std::string name = fmt::format("blocks.1.attn.{}.weight", part);
    CHECK(test::relative_gap(pass.grads.at(name), plain.grads.at(name)) < 1e-12);
  }
  CHECK_FALSE(pass.grads.at("blocks.0.attn.w_q.weight").empty());
}

TEST_CASE("ablating a head is zeroing its columns of z", "[models][probe]") {
  const test::OneThread quick;
  auto model = rough_decoder<double>(kProbed, 1);
  const auto plain = test::run_pass<double>(model, batch());
  const Tensor<double> whole = model.blocks[0].attn.w_o.weight.value;
  for (Index head = 0; head < 4; ++head) {
    CAPTURE(head);
    auto probe = replacing<double>("blocks.0.attn.z",
                                   [&](const Var<double>& z) { return without_head(z, head, 4); });
    const auto ablated = test::run_pass<double>(model, batch(), &probe);
    CHECK(std::fabs(ablated.loss - plain.loss) > 1e-4);
    // Head h owns the columns [hD, (h+1)D) of W_O: the same by the weights.
    Param<double>& w_o = model.blocks[0].attn.w_o.weight;
    w_o.value = without_head(Var<double>(whole), head, 4).value();
    CHECK(test::relative_gap(infer(model, batch().inputs), ablated.logits) < 1e-13);
    w_o.value = whole;
  }
  CHECK(same_bits(infer(model, batch().inputs), plain.logits));
}

TEST_CASE("an activation can be patched from another run", "[models][probe]") {
  const test::OneThread quick;
  const auto model = rough_decoder<float>(kProbed, 1);
  const Ids one = random_ids({1, 8}, 11, 1), other = random_ids({1, 8}, 11, 2);
  test::Recorder<float> seen;
  const Tensor<float> expected = infer(model, one, &seen);
  auto patch = replacing<float>("blocks.1.resid_pre", [&](const Var<float>&) -> Var<float> {
    return seen.seen.at("blocks.1.resid_pre");
  });
  CHECK_FALSE(same_bits(infer(model, other), expected));
  CHECK(same_bits(infer(model, other, &patch), expected));
}
