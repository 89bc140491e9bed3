// The checker agrees with torch.autograd.gradcheck, but where it means not to: the verdicts in
// tests/golden/torch_gradcheck.tsv are of the same functions, built by torch_gradcheck.py beside
// it.
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <sstream>

#include "headwise/autograd/gradcheck.hpp"
#include "headwise/core/file.hpp"
#include "headwise/ops/ops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

using T = Tensor<double>;
using V = Var<double>;
using Vars = std::vector<V>;

/// A function by the name it has in the TSV.
struct Judged {
  std::string name;
  Function<double> f;
  std::vector<T> inputs;
};

/// sin(1.7 i + k), row-major, and more.
T wave(double k, const Shape& shape, double more = 0) {
  T x = T::uninitialized(shape);
  double* out = x.data();
  for (Index i = 0; i < x.size(); ++i) out[i] = std::sin(1.7 * static_cast<double>(i) + k) + more;
  return x;
}

V number(double x) { return T({}, {x}); }

const T kWave = wave(1, {3, 4}), kPositive = wave(1, {3, 4}, 1.5), kSquare = wave(2, {3, 3});
const Ids kIds({4}, {2, 0, 2, 1}), kLabels({3}, {1, kIgnore, 3});

/// The gradients of the inputs x of some y that a test's backward gives.
using Pull = std::function<Vars(const V& dy, const Vars& x, const V& y)>;

/// forward(x), whose backward is what `pull` says.
Function<double> mistaken(const Function<double>& forward, const Pull& pull) {
  return [forward, pull](const Vars& v) {
    Vars x;  // constants, so that nothing but the result is recorded
    for (const V& input : v) x.emplace_back(input.value());
    const V y = forward(x);
    return record("mistaken", y.value(), v, [x, y, pull](const T& dy, Grads<double>& d) {
      const Vars dx = pull(dy, x, y);
      for (std::size_t i = 0; i < dx.size(); ++i) d.add(static_cast<Index>(i), dx[i].value());
    });
  };
}

V squared(const Vars& v) { return v[0] * v[0]; }

/// x^2, and what its backward does to its right gradient before it hands it on.
Function<double> square_with(const std::function<V(const V& right)>& spoil) {
  return mistaken(squared, [spoil](const V& dy, const Vars& x, const V&) {
    return Vars{spoil(number(2) * x[0] * dy)};
  });
}

V gelu_slope(const V& z) {
  T slope = z.value();
  double* p = slope.data();
  for (Index i = 0; i < slope.size(); ++i)
    p[i] = std::erfc(-p[i] / std::numbers::sqrt2) / 2 +
           p[i] * std::exp(-p[i] * p[i] / 2) / std::sqrt(2 * std::numbers::pi);
  return slope;
}

Vars norm_without_mean(const V& dy, const Vars& x, const V& y) {
  const V centred = x[0] - mean(x[0], {-1}, true);
  const V spread = sqrt(mean(square(centred), {-1}, true) + number(1e-5));
  return {(dy - y * mean(dy * y, {-1}, true)) / spread};
}

Vars rows_assigned(const V& dy, const Vars& x, const V&) {
  T d = T::zeros(x[0].shape());
  double* to = d.data();
  for (Index row = 0; row < 4; ++row)
    for (Index j = 0; j < 4; ++j)
      to[kIds.values[static_cast<std::size_t>(row)] * 4 + j] = dy.value().data()[row * 4 + j];
  return {d};
}

/// Divides by the 3 labels, not by the 2 that count.
Vars mean_over_all(const V& dy, const Vars& x, const V&) {
  const V counts = T({3, 1}, {1, 0, 1}), hot = T({3, 4}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  return {dy * (softmax(x[0]) * counts - hot) / number(3)};
}

std::vector<Judged> right() {
  return {
      {"matmul", [](auto& v) { return matmul(v[0], v[1]); }, {kWave, wave(2, {4, 2})}},
      {"matmul batched",
       [](auto& v) { return matmul(v[0], v[1]); },
       {wave(1, {2, 3, 4}), wave(2, {4, 2})}},
      {"linear",
       [](auto& v) { return linear(v[0], v[1], v[2]); },
       {kWave, wave(2, {2, 4}), wave(3, {2})}},
      {"layer_norm",
       [](auto& v) { return layer_norm(v[0], v[1], v[2]); },
       {kWave, wave(2, {4}), wave(3, {4})}},
      {"softmax", [](auto& v) { return softmax(v[0]); }, {kWave}},
      {"log_softmax", [](auto& v) { return log_softmax(v[0]); }, {kWave}},
      {"gelu exact", [](auto& v) { return gelu(v[0]); }, {kWave}},
      {"gelu tanh", [](auto& v) { return gelu(v[0], Gelu::tanh); }, {kWave}},
      {"cross_entropy ignored label",
       [](auto& v) { return cross_entropy(v[0], kLabels); },
       {kWave}},
      {"attention causal",
       [](auto& v) { return attention(v[0], v[1], v[2], {.heads = 2}); },
       {wave(1, {1, 4, 6}), wave(2, {1, 4, 6}), wave(3, {1, 4, 6})}},
      {"tanh", [](auto& v) { return tanh(v[0]); }, {kWave}},
      {"sigmoid", [](auto& v) { return sigmoid(v[0]); }, {kWave}},
      {"exp", [](auto& v) { return exp(v[0]); }, {kWave}},
      {"log", [](auto& v) { return log(v[0]); }, {kPositive}},
      {"sqrt", [](auto& v) { return sqrt(v[0]); }, {kPositive}},
      {"pow 1.5", [](auto& v) { return pow(v[0], 1.5); }, {kPositive}},
      {"max of a row", [](auto& v) { return max(v[0], {-1}); }, {kWave}},
      {"mean of a column", [](auto& v) { return mean(v[0], {0}); }, {kWave}},
      {"add broadcast", [](auto& v) { return v[0] + v[1]; }, {kWave, wave(2, {4})}},
      {"mul broadcast", [](auto& v) { return v[0] * v[1]; }, {kWave, wave(2, {3, 1})}},
      {"div broadcast", [](auto& v) { return v[0] / v[1]; }, {kWave, wave(2, {4}, 2)}},
      {"embedding repeated ids", [](auto& v) { return embedding(v[0], kIds); }, {kWave}},
      {"input used twice", [](auto& v) { return v[0] * v[0] + v[0]; }, {kWave}},
      {"sigmoid of a transposed input",
       [](auto& v) { return sigmoid(v[0]); },
       {transpose<double>(wave(1, {3, 5})).value()}},
      {"square by hand", square_with([](const V& g) { return g; }), {kWave}},
  };
}

/// Mistakes in what a test's backward makes of x^2's gradient.
std::vector<Judged> wrong_squares() {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const std::vector<std::pair<std::string, std::function<V(const V&)>>> spoils = {
      {"factor 2", [](const V& g) { return number(2) * g; }},
      {"last row zero",
       [](const V& g) {
         return g * V(T({3, 1}, {1, 1, 0}));
       }},
      {"nan",
       [](const V& g) {
         T spoilt = g.value();
         spoilt.data()[3] = std::numeric_limits<double>::quiet_NaN();
         return V(spoilt);
       }},
      {"zero", [](const V& g) { return V(T::zeros(g.shape())); }},
      {"one per cent off", [](const V& g) { return number(1.01) * g; }},
      {"backward not deterministic",
       [calls](const V& g) { return number(1 + 1e-12 * ++*calls) * g; }},
      {"rows off by one",
       [](const V& g) {
         return concat<double>({slice(g, 0, 1, 3), slice(g, 0, 0, 1)}, 0);
       }},
  };
  std::vector<Judged> all;
  for (const auto& [name, spoil] : spoils) all.push_back({name, square_with(spoil), {kWave}});
  return all;
}

std::vector<Judged> wrong_ops() {
  const auto product = [](auto& v) { return matmul(v[0], v[1]); };
  const auto plus = [](auto& v) { return v[0] + v[1]; };
  const auto pull_b = [](const V& dy, const Vars& x) { return matmul(transpose(x[0]), dy); };
  const auto masks = std::make_shared<std::atomic<std::uint64_t>>(0);
  return {
      {"wrong sign",
       mistaken(product,
                [=](auto& dy, auto& x, auto&) {
                  return Vars{-matmul(dy, transpose(x[1])), pull_b(dy, x)};
                }),
       {kSquare, wave(3, {3, 3})}},
      {"transposed",
       mistaken(product,
                [=](auto& dy, auto& x, auto&) {
                  return Vars{transpose(matmul(dy, transpose(x[1]))), pull_b(dy, x)};
                }),
       {kSquare, wave(3, {3, 3})}},
      {"bias of row 0 only",
       mistaken(plus,
                [](auto& dy, auto&, auto&) {
                  return Vars{dy, reshape(slice(dy, 0, 0, 1), {4})};
                }),
       {kWave, wave(2, {4})}},
      {"softmax without inner product",
       mistaken([](auto& v) { return softmax(v[0]); },
                [](auto& dy, auto&, auto& y) { return Vars{dy * y}; }),
       {kWave}},
      {"layer_norm without mean term",
       mistaken([](auto& v) { return layer_norm<double>(v[0], {}, {}); }, norm_without_mean),
       {kWave}},
      {"gelu slope at y",
       mistaken([](auto& v) { return gelu(v[0]); },
                [](auto& dy, auto&, auto& y) { return Vars{dy * gelu_slope(y)}; }),
       {kWave}},
      {"tanh slope from x",
       mistaken([](auto& v) { return tanh(v[0]); },
                [](auto& dy, auto& x, auto&) { return Vars{dy * (number(1) - square(x[0]))}; }),
       {kWave}},
      {"factor taken for a constant", [](auto& v) { return v[0] * V(v[0].value()); }, {kWave}},
      {"dropout with a new mask",
       [masks](auto& v) {
         Rng rng(++*masks);
         return dropout(v[0], 0.5, &rng);
       },
       {kWave}},
      {"embedding assigns repeated ids",
       mistaken([](auto& v) { return embedding(v[0], kIds); }, rows_assigned),
       {kWave}},
      {"cross_entropy mean over ignored",
       mistaken([](auto& v) { return cross_entropy(v[0], kLabels); }, mean_over_all),
       {kWave}},
  };
}

/// A function that the two judge differently.
struct Difference {
  Judged function;
  bool torch;
  Verdict ours;
  std::string reason;
};

std::vector<Difference> differences() {
  const V scales = T({2}, {1e11, 1}), doubled = T({2}, {1, 2});
  return {
      {{"sum of a softmax", [](auto& v) { return sum(softmax(v[0])); }, {kWave}},
       true,
       Verdict::inconclusive,
       "zero on both sides proves nothing: a backward that is missing gives it too"},
      {{"1e-5 off", square_with([](const V& g) { return number(1 + 1e-5) * g; }), {kWave}},
       true,
       Verdict::fail,
       "torch's rtol of 1e-3 hides it; extrapolated differences see 1e-7"},
      {{"small and doubled",
        mistaken([](auto& v) { return number(1e-6) * squared(v); },
                 [](auto& dy, auto& x, auto&) { return Vars{number(4e-6) * x[0] * dy}; }),
        {kWave}},
       true,
       Verdict::fail,
       "torch's atol of 1e-5 passes any gradient that small; ours is 0"},
      {{"smallest of far apart doubled",
        mistaken([=](auto& v) { return v[0] * scales; },
                 [=](auto& dy, auto&, auto&) { return Vars{dy * scales * doubled}; }),
        {wave(1, {2})}},
       false,
       Verdict::pass,
       "torch compares each element with itself, ours with the tensor's largest: 1e-11 of it"},
  };
}

std::map<std::string, bool> torch_verdicts() {
  std::map<std::string, bool> verdicts;
  std::istringstream lines(read_file(HEADWISE_GOLDEN "/torch_gradcheck.tsv"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    REQUIRE(tab != std::string::npos);
    const std::string verdict = line.substr(tab + 1);
    REQUIRE((verdict == "true" || verdict == "false"));
    REQUIRE(verdicts.emplace(line.substr(0, tab), verdict == "true").second);
  }
  return verdicts;
}

std::vector<Judged> agreed() {
  std::vector<Judged> all = right();
  for (const auto& more : {wrong_squares(), wrong_ops()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

Verdict verdict_of(const Judged& judged) {
  const GradReport report = gradcheck(judged.f, judged.inputs, {.diagnose = false});
  UNSCOPED_INFO(describe(report));
  return report.verdict;
}

}  // namespace

TEST_CASE("the verdicts are torch.autograd.gradcheck's", "[gradcheck][golden]") {
  const std::map<std::string, bool> torch = torch_verdicts();
  const std::vector<Judged> all = agreed();
  CHECK(all.size() >= 20);
  for (const Judged& judged : all) {
    INFO(judged.name);
    REQUIRE(torch.contains(judged.name));
    CHECK(verdict_of(judged) == (torch.at(judged.name) ? Verdict::pass : Verdict::fail));
  }
}

TEST_CASE("where the verdicts are not torch.autograd.gradcheck's, there is a reason",
          "[gradcheck][golden]") {
  const std::map<std::string, bool> torch = torch_verdicts();
  for (const auto& [function, theirs, ours, reason] : differences()) {
    INFO(function.name << ": " << reason);
    REQUIRE(torch.contains(function.name));
    CHECK(torch.at(function.name) == theirs);
    CHECK(verdict_of(function) == ours);
  }
}

TEST_CASE("every verdict of torch's belongs to a function here, and the other way round",
          "[gradcheck][golden]") {
  std::set<std::string> theirs, ours;
  for (const auto& [name, verdict] : torch_verdicts()) theirs.insert(name);
  for (const Judged& judged : agreed()) CHECK(ours.insert(judged.name).second);
  for (const Difference& difference : differences())
    CHECK(ours.insert(difference.function.name).second);
  CHECK(ours == theirs);
}

TEST_CASE("one number repeated is copied before its elements are moved", "[gradcheck]") {
  const T repeated = add<double>(T::zeros({2, 1}), T({}, {0.7})).value();
  const V matrix = T({2, 2}, {1, 2, 3, 4});
  const GradReport report =
      gradcheck([&](const Vars& v) { return sum(matmul(matrix, v[0])); }, {repeated});
  CHECK(report.verdict == Verdict::pass);
  // Elements that moved together would measure 10 for both.
  const T expected({2, 1}, {4, 6});
  CHECK(relative_gap(report.tensors.at(0).a, expected) < 1e-12);
  CHECK(relative_gap(report.tensors.at(0).n, expected) < 1e-9);
}

TEST_CASE("two inputs that share their storage are moved one at a time", "[gradcheck]") {
  const GradReport report =
      gradcheck([](const Vars& v) { return sum(v[0] * square(v[1])); }, {kWave, kWave});
  CHECK(report.verdict == Verdict::pass);
  CHECK(relative_gap(report.tensors.at(0).n, square<double>(kWave).value()) < 1e-9);
  CHECK(relative_gap(report.tensors.at(1).n, (number(2) * squared({kWave})).value()) < 1e-9);
}

TEST_CASE("a transposed input's gradient is in its own order", "[gradcheck]") {
  const T x = wave(1, {3, 5});
  const V s = sigmoid<double>(x);
  const GradReport report =
      gradcheck([](const Vars& v) { return sum(sigmoid(transpose(v[0]))); }, {x});
  CHECK(report.verdict == Verdict::pass);
  CHECK(relative_gap(report.tensors.at(0).n, (s * (number(1) - s)).value()) < 1e-9);
}

TEST_CASE("a function blind to one input is not passed", "[gradcheck]") {
  const Function<double> sees_nothing = [](const Vars& v) {
    return sum(softmax(v[0])) * sum(square(v[1]));
  };
  const Function<double> takes_nothing = [](const Vars& v) { return square(v[1]); };
  for (const auto& f : {sees_nothing, takes_nothing}) {
    const GradReport report = gradcheck(f, {kWave, kSquare});
    INFO(describe(report));
    CHECK(report.verdict == Verdict::inconclusive);
    CHECK(report.tensors.at(0).verdict == Verdict::inconclusive);
    CHECK(report.tensors.at(1).verdict == Verdict::pass);
  }
}
