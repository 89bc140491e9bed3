// A checker that cries wolf is switched off: right ops, of any shape and scale, must never fail.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "headwise/ops/op_table.hpp"
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/share.hpp"
#include "support/threads.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

using X = const std::vector<Var<double>>&;

/// One call of an op, drawn at random. Its result depends on each input: what does not, a softmax
/// of one number, has a test of its own below.
struct Drawn {
  std::vector<Shape> shapes;
  Domain domain;
  Function<double> call;
};

bool chance(Rng& rng, double p) { return rng.uniform() < p; }
Index from_to(Rng& rng, Index low, Index high) { return low + rng.below(high - low + 1); }

Shape random_shape(Rng& rng, Index lowest_rank = 1, Index highest_rank = 4) {
  std::vector<Index> sizes(static_cast<std::size_t>(from_to(rng, lowest_rank, highest_rank)));
  for (Index& s : sizes) s = from_to(rng, 1, 6);
  return Shape(sizes);
}

/// Rows of two numbers and more, as softmax and what is like it need.
Shape random_rows(Rng& rng, Index lowest_rank = 1) {
  return random_shape(rng, lowest_rank).with_last(from_to(rng, 2, 6));
}

/// A shape that broadcasts to another one: some sizes are 1, some leading axes are missing.
Shape repeated(Rng& rng, const Shape& whole) {
  std::vector<Index> sizes(whole.sizes().begin(), whole.sizes().end());
  for (Index& s : sizes)
    if (chance(rng, 0.25)) s = 1;
  if (chance(rng, 0.5)) sizes.erase(sizes.begin(), sizes.begin() + rng.below(whole.rank() + 1));
  return Shape(sizes);
}

Shape without_last(const Shape& s) { return Shape(s.sizes().first(s.sizes().size() - 1)); }

Index random_axis(Rng& rng, const Shape& s) { return rng.below(2 * s.rank()) - s.rank(); }

/// Some of the axes, none twice, perhaps none; some count from the end.
std::vector<Index> random_axes(Rng& rng, const Shape& s) {
  std::vector<Index> axes = rng.permutation(s.rank());
  axes.resize(static_cast<std::size_t>(rng.below(s.rank() + 1)));
  for (Index& a : axes)
    if (chance(rng, 0.3)) a -= s.rank();
  return axes;
}

Ids random_ids(Rng& rng, const Shape& shape, Index below, double ignored = 0) {
  std::vector<Id> values(static_cast<std::size_t>(shape.size()));
  for (Id& v : values) v = chance(rng, ignored) ? kIgnore : static_cast<Id>(rng.below(below));
  return {shape, std::move(values)};
}

/// Of no, one or several parts. (B,H,T,S); without a batch there are no lengths.
Mask random_mask(Rng& rng, Index batch, const std::vector<Index>& bias_shape) {
  const Index queries = bias_shape[bias_shape.size() - 2], keys = bias_shape.back();
  Mask mask = everything();
  if (chance(rng, 0.4)) mask = mask & causal();
  if (chance(rng, 0.2)) mask = mask & causal(from_to(rng, 0, 3));
  if (batch > 0 && chance(rng, 0.3)) {
    std::vector<Index> lengths(static_cast<std::size_t>(batch));
    for (Index& n : lengths) n = from_to(rng, 0, keys);
    mask = mask & keys_below(lengths);
  }
  if (chance(rng, 0.3))
    mask = mask & allow(queries, keys, [&](Index, Index) { return chance(rng, 0.7); });
  if (chance(rng, 0.3)) {
    std::vector<Index> sizes = bias_shape;
    if (sizes.size() > 2)
      sizes.erase(sizes.begin(), sizes.end() - from_to(rng, 2, std::ssize(sizes)));
    mask = mask & bias(normal_tensor<double>(Shape(sizes), 1, rng));
  }
  return mask;
}

Drawn one_input(Rng& rng, Domain domain, Function<double> call) {
  return {{random_shape(rng)}, domain, std::move(call)};
}

Drawn two(Rng& rng, Domain domain, Var<double> (*op)(const Var<double>&, const Var<double>&)) {
  const Shape whole = random_shape(rng);
  return {
      {repeated(rng, whole), repeated(rng, whole)}, domain, [=](X x) { return op(x[0], x[1]); }};
}

Drawn rows(Rng& rng, Var<double> (*op)(const Var<double>&)) {
  return {{random_rows(rng)}, any, [=](X x) { return op(x[0]); }};
}

using Reduction = Var<double> (*)(const Var<double>&, const std::vector<Index>&, bool);
Drawn reduction(Rng& rng, Domain domain, Reduction op) {
  const Shape s = random_shape(rng);
  const std::vector<Index> axes = random_axes(rng, s);
  const bool keep = chance(rng, 0.5);
  return {{s}, domain, [=](X x) { return op(x[0], axes, keep); }};
}

Drawn random_pow(Rng& rng) {
  const bool whole = chance(rng, 0.5);
  const double exponent = whole ? static_cast<double>(from_to(rng, 1, 4)) : 4 * rng.uniform() - 2;
  return one_input(rng, whole ? away_from_zero : positive,
                   [=](X x) { return headwise::pow(x[0], exponent); });
}

Drawn random_matmul(Rng& rng) {
  const Index m = from_to(rng, 1, 6), k = from_to(rng, 1, 6), n = from_to(rng, 1, 6);
  if (chance(rng, 0.1)) return {{{m, m}}, any, [](X x) { return matmul(x[0], x[0]); }};
  const Shape batch = random_shape(rng, 1, 2);
  const auto with = [&](Index rows, Index columns) {
    const Shape lead = repeated(rng, batch);
    std::vector<Index> sizes(lead.sizes().begin(), lead.sizes().end());
    sizes.insert(sizes.end(), {rows, columns});
    return Shape(sizes);
  };
  const Shape a = with(m, k), b = with(k, n);
  return {{a, b}, any, [](X x) { return matmul(x[0], x[1]); }};
}

Drawn random_permute(Rng& rng) {
  const Shape s = random_shape(rng);
  std::vector<Index> axes = rng.permutation(s.rank());
  for (Index& a : axes)
    if (chance(rng, 0.3)) a -= s.rank();
  return {{s}, any, [=](X x) { return permute(x[0], axes); }};
}

Drawn random_reshape(Rng& rng) {
  const Shape s = random_shape(rng);
  std::vector<Index> sizes;  // its own in another order, one of them left open, or in one row
  for (const Index axis : rng.permutation(s.rank())) sizes.push_back(s[axis]);
  if (chance(rng, 0.5)) sizes.back() = -1;
  if (chance(rng, 0.2)) sizes = {1, s.size()};
  return {{s}, any, [=](X x) { return reshape(x[0], sizes); }};
}

Drawn random_slice(Rng& rng) {
  const Shape s = random_shape(rng);
  const Index axis = random_axis(rng, s), begin = rng.below(s[axis]);
  const Index end = from_to(rng, begin + 1, s[axis]);
  return {{s}, any, [=](X x) { return slice(x[0], axis, begin, end); }};
}

Drawn random_concat(Rng& rng) {
  const Shape s = random_shape(rng);
  const Index axis = random_axis(rng, s);
  const auto position = static_cast<std::size_t>(axis < 0 ? axis + s.rank() : axis);
  std::vector<Shape> shapes(static_cast<std::size_t>(from_to(rng, 1, 3)), s);
  if (chance(rng, 0.2)) return {shapes, any, [=](X x) { return stack(x, axis); }};
  for (Shape& shape : shapes) {
    std::vector<Index> sizes(s.sizes().begin(), s.sizes().end());
    sizes[position] = from_to(rng, 1, 6);
    shape = Shape(sizes);
  }
  return {shapes, any, [=](X x) { return concat(x, axis); }};
}

Drawn random_where(Rng& rng) {
  const Shape whole = random_rows(rng), part = repeated(rng, whole);
  const Shape shape = part.size() > 1 ? part : whole;
  std::vector<std::uint8_t> holds(static_cast<std::size_t>(shape.size()));
  for (std::uint8_t& h : holds) h = chance(rng, 0.5);
  holds.front() = !holds.back();  // takes from both
  const Condition condition(shape, holds);
  return {{repeated(rng, whole), repeated(rng, whole)}, any, [=](X x) {
            return where(condition, x[0], x[1]);
          }};
}

/// linear() or gelu_linear(), with and without a bias.
template <class Op>
Drawn product(Rng& rng, Op op) {
  const Shape x = random_shape(rng);
  const Index outputs = from_to(rng, 1, 6);
  if (chance(rng, 0.3))
    return {{x, {outputs, x.last()}}, any, [=](X v) { return op(v[0], v[1], {}); }};
  return {{x, {outputs, x.last()}, {outputs}}, any, [=](X v) { return op(v[0], v[1], v[2]); }};
}

Gelu random_gelu(Rng& rng) { return chance(rng, 0.5) ? Gelu::exact : Gelu::tanh; }

Drawn random_embedding(Rng& rng) {
  const Index words = from_to(rng, 1, 6), width = from_to(rng, 1, 6);
  const Ids ids = random_ids(rng, random_shape(rng, 1, 3), words);
  return {{{words, width}}, any, [=](X x) { return embedding(x[0], ids); }};
}

Drawn random_layer_norm(Rng& rng) {
  const Shape s = random_rows(rng), row = {s.last()};
  const auto sum_too = [](X x) {
    const auto [sum, norm] = add_layer_norm(x[0], x[1], x[2], x[3]);
    return sum * norm;
  };
  switch (rng.below(5)) {
    case 0:
      return {{s}, any, [](X x) { return layer_norm(x[0], {}, {}); }};
    case 1:
      return {{s, row}, any, [](X x) { return layer_norm(x[0], x[1], {}); }};
    case 2:
      return {{s, row}, any, [](X x) { return layer_norm(x[0], {}, x[1]); }};
    case 3:
      return {{s, s, row, row}, any, sum_too};
    default:
      return {{s, row, row}, any, [](X x) { return layer_norm(x[0], x[1], x[2]); }};
  }
}

Drawn random_rms_norm(Rng& rng) {
  const Shape s = random_shape(rng);
  if (chance(rng, 0.3)) return {{s}, any, [](X x) { return rms_norm(x[0], {}); }};
  return {{s, {s.last()}}, any, [](X x) { return rms_norm(x[0], x[1]); }};
}

Drawn random_dropout(Rng& rng) {
  const double rate = 0.5 * rng.uniform();
  return one_input(rng, any, [=, seed = rng.bits()](X x) {
    Rng draws(seed);  // the same at every call
    return dropout(x[0], rate, &draws);
  });
}

Drawn random_attention(Rng& rng) {
  const Index batch = from_to(rng, 1, 3), queries = from_to(rng, 1, 6), keys = from_to(rng, 2, 6);
  const Index kv_heads = from_to(rng, 1, 2), heads = kv_heads * from_to(rng, 1, 2);
  const Index width = from_to(rng, 1, 4), value_width = from_to(rng, 1, 4);
  Attend<double> how{.heads = heads, .kv_heads = kv_heads};
  how.mask = random_mask(rng, batch, {batch, heads, queries, keys});
  if (chance(rng, 0.3)) how.scale = rng.uniform();
  if (chance(rng, 0.3)) how.dropout = 0.5 * rng.uniform();
  return {{{batch, queries, heads * width},
           {batch, keys, kv_heads * width},
           {batch, keys, kv_heads * value_width}},
          any,
          [=, seed = rng.bits()](X x) {
            Rng draws(seed);
            Attend<double> with_draws = how;
            with_draws.random = &draws;
            return attention(x[0], x[1], x[2], with_draws);
          }};
}

Drawn random_masked_softmax(Rng& rng) {
  const Shape s = random_rows(rng, 2);
  const std::vector<Index> sizes(s.sizes().begin(), s.sizes().end());
  const std::vector<Index> table = s.rank() == 4 ? sizes : std::vector<Index>{s[-2], s[-1]};
  const Mask mask = random_mask(rng, s.rank() > 2 ? s[0] : 0, table);
  return {{s}, any, [=](X x) { return masked_softmax(x[0], mask); }};
}

Drawn random_cross_entropy(Rng& rng) {
  const Shape s = random_rows(rng);
  const Ids labels = random_ids(rng, without_last(s), s.last(), 0.2);
  return {{s}, any, [=](X x) { return cross_entropy(x[0], labels); }};
}

Drawn random_linear_cross_entropy(Rng& rng) {
  const Shape s = random_shape(rng);
  const Index words = from_to(rng, 2, 6);
  const Ids labels = random_ids(rng, without_last(s), words, 0.2);
  return {
      {s, {words, s.last()}}, any, [=](X x) { return linear_cross_entropy(x[0], x[1], labels); }};
}

const std::map<std::string, Drawn (*)(Rng&)>& generators() {
#define ONE(op, domain)                                                                       \
  {                                                                                           \
#op, [](Rng & r) { return one_input(r, domain, [](X x) { return headwise::op(x[0]); }); } \
  }
#define TWO(op, domain)                                               \
  {                                                                   \
#op, [](Rng & r) { return two(r, domain, headwise::op<double>); } \
  }
#define REDUCTION(op, domain)                                               \
  {                                                                         \
#op, [](Rng & r) { return reduction(r, domain, headwise::op<double>); } \
  }
  static const std::map<std::string, Drawn (*)(Rng&)> all = {
      TWO(add, any),
      TWO(sub, any),
      TWO(mul, any),
      TWO(div, away_from_zero),
      ONE(neg, any),
      ONE(exp, any),
      ONE(log, positive),
      ONE(sqrt, positive),
      ONE(tanh, any),
      ONE(sigmoid, any),
      ONE(relu, away_from_zero),
      ONE(square, any),
      ONE(abs, away_from_zero),
      {"pow", random_pow},
      REDUCTION(sum, any),
      REDUCTION(mean, any),
      REDUCTION(max, distinct),
      {"matmul", random_matmul},
      {"permute", random_permute},
      {"reshape", random_reshape},
      {"slice", random_slice},
      {"concat", random_concat},
      {"where", random_where},
      {"softmax", [](Rng& r) { return rows(r, softmax<double>); }},
      {"log_softmax", [](Rng& r) { return rows(r, log_softmax<double>); }},
      {"linear", [](Rng& r) { return product(r, linear<double>); }},
      {"embedding", random_embedding},
      {"layer_norm", random_layer_norm},
      {"rms_norm", random_rms_norm},
      {"gelu",
       [](Rng& r) {
         return one_input(r, any, [kind = random_gelu(r)](X x) { return gelu(x[0], kind); });
       }},
      {"gelu_linear",
       [](Rng& r) {
         return product(r, [kind = random_gelu(r)](const Var<double>& x, const Var<double>& w,
                                                   const Var<double>& b) {
           return gelu_linear(x, w, b, kind);
         });
       }},
      {"dropout", random_dropout},
      {"attention", random_attention},
      {"masked_softmax", random_masked_softmax},
      {"cross_entropy", random_cross_entropy},
      {"linear_cross_entropy", random_linear_cross_entropy}};
#undef ONE
#undef TWO
#undef REDUCTION
  return all;
}

std::vector<Tensor<double>> scaled_inputs(const Drawn& drawn, double scale, Rng& rng) {
  std::vector<Tensor<double>> inputs;
  for (const Shape& shape : drawn.shapes) {
    Tensor<double> x = Tensor<double>::uninitialized(shape);
    const std::span values(x.data(), static_cast<std::size_t>(x.size()));
    drawn.domain(rng, values);
    for (double& v : values) v *= scale;
    inputs.push_back(std::move(x));
  }
  return inputs;
}

/// A check to do, and in words, to find it again.
struct Check {
  std::string text;
  Function<double> call;
  std::vector<Tensor<double>> inputs;
};

/// Check number n of a seed: of each op in turn.
Check random_check(std::uint64_t seed, std::uint64_t n) {
  const auto& all = generators();
  const auto& [name, generator] = *std::next(all.begin(), static_cast<Index>(n % all.size()));
  Rng rng(seed, n);
  const double scale = std::pow(10, 6 * rng.uniform() - 3);
  const Drawn drawn = generator(rng);
  Check check{fmt::format("{}, scale {:.3g}, seed {}, check {}, inputs", name, scale, seed, n),
              drawn.call, scaled_inputs(drawn, scale, rng)};
  for (const Shape& shape : drawn.shapes) check.text += " " + to_string(shape);
  return check;
}

}  // namespace

TEST_CASE("no right op fails at any shape or scale", "[ops][gradcheck][false-alarm]") {
  constexpr std::uint64_t kChecks = 1000;
  const Threads one(1);  // many tiny regions
  std::uint64_t checks = 0, failed = 0, inconclusive = 0;
  for (std::uint64_t n = 0; n < kChecks; n += kEvery, ++checks) {
    const Check c = random_check(1, n);
    INFO(c.text);
    const GradReport r = gradcheck(c.call, c.inputs, {.diagnose = false});
    INFO(r.where << ": analytic " << r.analytic << ", numeric " << r.numeric << ", worst "
                 << r.worst);
    for (const std::string& problem : r.problems) UNSCOPED_INFO(problem);
    CHECK(r.verdict != Verdict::fail);
    failed += r.verdict == Verdict::fail;
    inconclusive += r.verdict == Verdict::inconclusive;
  }
  WARN(checks << " checks of right ops: " << failed << " failed, " << inconclusive
              << " inconclusive");
  CHECK(inconclusive <= checks / 20);  // an overflow, a gradient that rounding hides
}

TEST_CASE("every op is among those checked at random", "[ops][gradcheck][false-alarm]") {
  std::vector<std::string> listed, drawn;
  for (const OpSpec& spec : op_table()) listed.push_back(spec.name);
  for (const auto& [name, generator] : generators()) drawn.push_back(name);
  std::sort(listed.begin(), listed.end());
  CHECK(drawn == listed);
}

TEST_CASE("a result that depends on no input is inconclusive at any scale",
          "[ops][gradcheck][false-alarm]") {
  const auto one_key = [](X x) {
    return attention(x[0], x[1], Var<double>(Tensor<double>::full({1, 1, 2}, 3)),
                     {.mask = everything()});
  };
  const std::vector<std::pair<std::string, Drawn>> constants = {
      {"softmax", {{{3, 1}}, any, [](X x) { return softmax(x[0]); }}},
      {"log_softmax", {{{3, 1}}, any, [](X x) { return log_softmax(x[0]); }}},
      {"masked_softmax", {{{2, 1}}, any, [](X x) { return masked_softmax(x[0], everything()); }}},
      {"layer_norm", {{{3, 1}}, any, [](X x) { return layer_norm(x[0], {}, {}); }}},
      {"attention to one key", {{{1, 3, 2}, {1, 1, 2}}, any, one_key}},
      {"one word",
       {{{3, 1}},
        any,
        [](X x) {
          return cross_entropy(x[0], Ids({3}, {0, 0, 0}));
        }}},
      {"no label",
       {{{2, 3}, {4, 3}},
        any,
        [](X x) {
          return linear_cross_entropy(x[0], x[1], Ids({2}, {kIgnore, kIgnore}));
        }}},
      {"itself less itself", {{{2, 3}}, any, [](X x) { return x[0] - x[0]; }}}};
  for (const auto& [name, constant] : constants)
    for (const double scale : {1e-3, 1.0, 1e3}) {
      CAPTURE(name, scale);
      Rng rng(1);
      const GradReport r =
          gradcheck(constant.call, scaled_inputs(constant, scale, rng), {.diagnose = false});
      INFO(r.where << ": analytic " << r.analytic << ", numeric " << r.numeric);
      CHECK(r.verdict == Verdict::inconclusive);
    }
}
