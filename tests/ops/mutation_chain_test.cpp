// Plants mistakes at each place of a composition, and wants the one record that has it named.
#include <memory>

#include "headwise/ops/ops.hpp"
#include "support/planted.hpp"

using namespace headwise;
using namespace headwise::test;

namespace {

/// Calls the ops of a composition, one of them changed, and keeps what each was called with.
struct Caller {
  Index target = -1;
  Change change{};
  std::vector<std::pair<std::string, Call>>* calls = nullptr;
  Index place = 0;

  Value operator()(const std::string& op, const Op& f, const Vars& x) {
    if (calls != nullptr) {
      std::vector<Tensor<double>> values;
      for (const Value& input : x) values.push_back(input.value());
      calls->emplace_back(op, Call(f, std::move(values)));
    }
    return place++ == target ? change(f)(x) : f(x);
  }
};

using Composition = std::function<Value(Caller&, const Vars&)>;

/// Every record of a composition as a place for a mistake.
std::vector<Site> sites_of(const Composition& composition, const std::vector<Tensor<double>>& x) {
  std::vector<std::pair<std::string, Call>> calls;
  Caller watch{.calls = &calls};
  composition(watch, Vars(x.begin(), x.end()));
  std::vector<Site> all;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto place = static_cast<Index>(i);
    const auto whole = [=](const Change& change) {
      return [=](const Vars& in) {
        Caller call{.target = place, .change = change};
        return composition(call, in);
      };
    };
    all.push_back({calls[i].first, fmt::format("call {}", i), x, whole, calls[i].second,
                   static_cast<Index>(x.size() + i)});
  }
  return all;
}

std::vector<Tensor<double>> normal(const std::vector<Shape>& shapes) {
  std::vector<Tensor<double>> all;
  for (const Shape& shape : shapes) all.push_back(random_tensor<double>(shape, all.size() + 1));
  return all;
}

/// The first mistake of each kind, for each input and for the result.
std::vector<Planted> few(const std::vector<Planted>& all) {
  std::set<std::pair<std::string, std::set<Fault>>> seen;
  std::vector<Planted> some;
  for (const Planted& p : all)
    if (seen.insert({p.mistake.name.substr(0, p.mistake.name.find(':')), p.kinds}).second)
      some.push_back(p);
  return some;
}

const Op kLinear = [](const Vars& x) { return linear(x[0], x[1], x.size() > 2 ? x[2] : Value()); };
const Op kGelu = [](const Vars& x) { return gelu(x[0]); };
const Op kLayerNorm = [](const Vars& x) { return layer_norm(x[0], x[1], x[2]); };
const Op kAdd = [](const Vars& x) { return add(x[0], x[1]); };

/// sum(layer_norm(gelu(linear(x, w, b)), gain, bias)^2)
Value chain(Caller& call, const Vars& x) {
  const Value hidden = call("gelu", kGelu, {call("linear", kLinear, {x[0], x[1], x[2]})});
  const Value norm = call("layer_norm", kLayerNorm, {hidden, x[3], x[4]});
  const Value squares = call("square", [](const Vars& y) { return square(y[0]); }, {norm});
  return call("sum", [](const Vars& y) { return sum(y[0]); }, {squares});
}

/// A decoder of one block, with a tied weight, on fixed tokens.
Value small_decoder(Caller& call, const Vars& x) {
  const Op embed = [](const Vars& y) { return embedding(y[0], Ids({2, 3}, {0, 2, 2, 4, 1, 0})); };
  const Op attend = [](const Vars& y) {
    return attention(y[0], y[1], y[2], Attend<double>{.heads = 2});
  };
  const Op down = [](const Vars& y) { return gelu_linear(y[0], y[1], y[2]); };
  const Op loss = [](const Vars& y) {
    return linear_cross_entropy(y[0], y[1], Ids({2, 3}, {2, 2, 1, kIgnore, 0, 3}));
  };
  const Value start = call("add", kAdd, {call("embedding", embed, {x[0]}), x[1]});
  const Value norm1 = call("layer_norm", kLayerNorm, {start, x[2], x[3]});
  const Value q = call("linear", kLinear, {norm1, x[4]}),
              k = call("linear", kLinear, {norm1, x[5]}),
              v = call("linear", kLinear, {norm1, x[6]});
  const Value out = call("linear", kLinear, {call("attention", attend, {q, k, v}), x[7]});
  const Value middle = call("add", kAdd, {start, out});
  const Value norm2 = call("layer_norm", kLayerNorm, {middle, x[8], x[9]});
  const Value up = call("linear", kLinear, {norm2, x[10], x[11]});
  const Value end = call("add", kAdd, {middle, call("gelu_linear", down, {up, x[12], x[13]})});
  return call("linear_cross_entropy", loss,
              {call("layer_norm", kLayerNorm, {end, x[14], x[15]}), x[0]});
}

}  // namespace

TEST_CASE("a mistake at any place of a chain is found there", "[mutation]") {
  const std::vector<Site> all = sites_of(chain, normal({{4, 3}, {5, 3}, {5}, {5}, {5}}));
  std::vector<Planted> planted;
  for (const Site& site : all)
    for (const Planted& p : mistakes_at(site)) planted.push_back(p);
  require_caught(planted, fmt::format("{} places of a chain", all.size()));
}

TEST_CASE("a mistake at any place of a small decoder is found there", "[mutation]") {
  const std::vector<Site> all = sites_of(small_decoder, normal({{5, 4},
                                                                {3, 4},
                                                                {4},
                                                                {4},
                                                                {4, 4},
                                                                {4, 4},
                                                                {4, 4},
                                                                {4, 4},
                                                                {4},
                                                                {4},
                                                                {6, 4},
                                                                {6},
                                                                {4, 6},
                                                                {4},
                                                                {4},
                                                                {4}}));
  std::vector<Planted> planted;
  for (const Site& site : all)
    for (const Planted& p : few(mistakes_at(site))) planted.push_back(p);
  require_caught(planted, fmt::format("{} places of a small decoder", all.size()));
}
