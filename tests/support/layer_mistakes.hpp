// The same for the ops that layers are made of, and the table of them all.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/op_mistakes.hpp"

namespace headwise::test {

inline Value variance(const Value& x) {
  return mean(square(sub(x, mean(x, {-1}, true))), {-1}, true);
}
inline Value inverse_root(const Value& x) { return pow(add(x, number(1e-5)), -0.5); }

/// With a mistake in x's gradient alone: `normed` is x's norm, with something fixed.
inline Op of_normed(const Op& f, bool gain, const std::function<Value(const Value&)>& normed) {
  return [=](const Vars& x) {
    Vars others = x;
    others[0] = fixed(x[0]);
    const Value base = f(others), dx = normed(x[0]);
    return with_gradient_of(base, add(base, gain ? mul(dx, fixed(x[1])) : dx));
  };
}

inline Mistakes layer_norm_mistakes(const Op& f, const std::string& label) {
  const bool gain = label != "bias alone" && label != "neither";
  const auto with_fixed_mean = [](const Value& x) {
    const Value centred = sub(x, fixed(mean(x, {-1}, true)));
    return mul(centred, inverse_root(mean(square(centred), {-1}, true)));
  };
  const auto with_fixed_deviation = [](const Value& x) {
    return mul(sub(x, mean(x, {-1}, true)), fixed(inverse_root(variance(x))));
  };
  Mistakes all = {
      like("without the mean of dy", Fault::other, of_normed(f, gain, with_fixed_mean)),
      like("without the term in xhat", Fault::other, of_normed(f, gain, with_fixed_deviation))};
  if (!gain) return all;
  const auto right = [](const Value& x) { return layer_norm(x, {}, {}); };
  all.push_back(like("x's gradient without the gain", Fault::other, of_normed(f, false, right)));
  return all;
}

inline Mistakes rms_norm_mistakes(const Op& f, const std::string& label) {
  const auto with_fixed_root = [](const Value& x) {
    return mul(x, fixed(inverse_root(mean(square(x), {-1}, true))));
  };
  return {like("without the second term", Fault::other,
               of_normed(f, label != "no gain", with_fixed_root))};
}

inline Mistakes gelu_linear_mistakes(const Op&, const std::string& label) {
  const Gelu kind = label == "tanh" ? Gelu::tanh : Gelu::exact;
  const auto with = [kind](bool product) {
    return [=](const Vars& x) {
      const Value y = gelu(fixed(x[0]), kind);
      const Value h = with_gradient_of(y, product ? mul(x[0], div(y, fixed(x[0]))) : x[0]);
      return linear(h, x[1], x.size() > 2 ? x[2] : Value());
    };
  };
  return {like("without x phi(x)", Fault::other, with(true)),
          like("without gelu's derivative", Fault::other, with(false))};
}

inline Mistakes linear_mistakes(const Op&, const std::string& label) {
  if (label != "square weight") return {};
  return {like("w transposed in x's gradient", Fault::transposition, [](const Vars& x) {
    return add(linear(x[0], transpose(fixed(x[1]))), linear(fixed(x[0]), x[1], x[2]));
  })};
}

/// The scores are those of the case; q and k get their gradient through `wrong(scores, pattern)`.
inline Op attention_with(
    Index heads, const Mask& mask,
    const std::function<Value(const Value& scores, const Value& pattern)>& wrong) {
  return [=](const Vars& x) {
    const Value q = split_heads(x[0], heads), k = split_heads(x[1], heads);
    const double scale = 1 / std::sqrt(static_cast<double>(q.shape().last()));
    const Value scores = mul(matmul(q, transpose(k)), number(scale));
    const Value pattern = masked_softmax(scores, mask);
    return concat_heads(
        matmul(with_gradient_of(pattern, wrong(scores, pattern)), split_heads(x[2], heads)));
  };
}

inline Mistakes attention_mistakes(const Op&, const std::string& label) {
  const Index heads = label == "two blocks of rows" ? 1 : 2;
  const bool plain = label == "causal" || label == "fewer queries than keys" || heads == 1;
  if (!plain && label != "everything") return {};
  const Mask mask = plain ? causal() : everything();
  Mistakes all = {like("q and k without softmax's sum", Fault::other,
                       attention_with(heads, mask, [](const Value& scores, const Value& pattern) {
                         return mul(scores, fixed(pattern));
                       }))};
  all.push_back(like("q and k without 1/sqrt(D)", Fault::factor,  // D is 2 in all of them
                     attention_with(heads, mask, [](const Value&, const Value& pattern) {
                       return mul(pattern, number(std::sqrt(2.0)));
                     })));
  return all;
}

inline Mistakes cross_entropy_mistakes(const std::function<Value(const Vars&)>& logits,
                                       Fault not_ignored) {
  return {like("without the -1 at the label", Fault::other,
               [logits](const Vars& x) {
                 const Value each = log(sum(exp(logits(x)), {-1}));
                 return sum(mul(each, Value(Tensor<double>({2, 3}, {.2, .2, 0, .2, .2, .2}))));
               }),
          like("the ignored position counted", not_ignored, [logits](const Vars& x) {
            return mul(cross_entropy(logits(x), Ids({2, 3}, {0, 3, 0, 1, 1, 2})), number(1.2));
          })};
}

inline Mistakes linear_cross_entropy_mistakes(const Op& f, const std::string& label) {
  // The result is one number: of the sum that w gets, no part shows.
  if (label == "one label ignored")
    return cross_entropy_mistakes([](const Vars& x) { return linear(x[0], x[1]); }, Fault::other);
  return {like("w from the last block alone", Fault::other, [f](const Vars& x) {
    std::vector<Id> labels;
    for (Id i = 256; i < 300; ++i) labels.push_back(i % 3);
    const Value tail = linear(slice(fixed(x[0]), 0, 256, 300), x[1]);
    return add(f({x[0], fixed(x[1])}),
               mul(cross_entropy(tail, Ids({44}, labels)), number(44.0 / 300)));
  })};
}

/// Those of a case of the table, by its op and label.
inline Mistakes own_mistakes(const std::string& op, const std::string& label, const Op& f) {
  const auto one = [](const std::string& name, Fault kind, Op g) {
    return [=](const Op&, const std::string&) { return Mistakes{like(name, kind, g)}; };
  };
  const auto of_y = [](const std::string& name) {
    return [=](const Op& g, const std::string&) {
      return Mistakes{like(name, Fault::other, y_dy(g))};
    };
  };
  using Of = std::function<Mistakes(const Op&, const std::string&)>;
  const std::map<std::string, Of> table = {
      {"exp", one("dy alone", Fault::other, through)},
      {"log", one("dy alone", Fault::other, through)},
      {"relu", one("negative x too", Fault::other, through)},
      {"abs", one("without sign(x)", Fault::sign, through)},  // where x < 0, that is all
      {"neg", one("dy alone", Fault::sign, through)},
      {"square", one("x instead of 2 x", Fault::factor,
                     [](const Vars& x) { return mul(x[0], fixed(x[0])); })},
      {"sqrt", one("without the 1/2", Fault::factor,
                   [](const Vars& x) { return div(x[0], sqrt(fixed(x[0]))); })},
      {"sigmoid", of_y("y instead of y (1 - y)")},
      {"tanh", one("1 - y instead of 1 - y^2", Fault::other,
                   [](const Vars& x) { return mul(x[0], sub(number(1), tanh(fixed(x[0])))); })},
      {"pow", pow_mistakes},
      {"mul", mul_mistakes},
      {"div", div_mistakes},
      {"sum",
       [](const Op&, const std::string& l) {
         return Mistakes{like("as for the mean", Fault::factor, mean_of(l))};
       }},
      {"mean",
       [](const Op&, const std::string& l) {
         return Mistakes{like("as for the sum", Fault::factor, sum_of(l))};
       }},
      {"max",
       [](const Op&, const std::string& l) {
         return Mistakes{like("to all, not the largest", Fault::other, sum_of(l))};
       }},
      {"matmul", matmul_mistakes},
      {"permute", permute_mistakes},
      {"slice", slice_mistakes},
      {"concat", concat_mistakes},
      {"where", where_mistakes},
      {"softmax", of_y("without <p, dp>")},
      {"masked_softmax", of_y("without <p, dp>")},
      {"log_softmax", one("without the sum", Fault::other, through)},
      {"linear", linear_mistakes},
      {"embedding", embedding_mistakes},
      {"layer_norm", layer_norm_mistakes},
      {"rms_norm", rms_norm_mistakes},
      {"gelu",
       [](const Op& g, const std::string&) {
         return Mistakes{like("without x phi(x)", Fault::other, as_product(g))};
       }},
      {"gelu_linear", gelu_linear_mistakes},
      {"dropout", one("nothing struck", Fault::other,
                      [](const Vars& x) { return mul(x[0], number(1 / 0.7)); })},
      {"attention", attention_mistakes},
      {"cross_entropy",
       [](const Op&, const std::string&) {
         // Only the ignored row is wrong.
         return cross_entropy_mistakes([](const Vars& x) { return x[0]; }, Fault::row);
       }},
      {"linear_cross_entropy", linear_cross_entropy_mistakes},
  };
  const auto found = table.find(op);
  return found == table.end() ? Mistakes{} : found->second(f, label);
}

}  // namespace headwise::test
