#include "headwise/study/attribution.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/study/head.hpp"
#include "headwise/study/recording.hpp"
#include "study/folded.hpp"

namespace headwise::study {
namespace {

/// 1 / sigma of a row, as layer_norm() has it.
template <Real T>
double inverse_deviation(const T* x, Index c) {
  double mean = 0, square = 0;
  for (Index i = 0; i < c; ++i) mean += static_cast<double>(x[i]);
  mean /= static_cast<double>(c);
  for (Index i = 0; i < c; ++i) square += std::pow(static_cast<double>(x[i]) - mean, 2);
  return 1 / std::sqrt(square / static_cast<double>(c) + kNormEps);
}

/// The rows of a table that ids name, (N,C).
template <Real T>
Tensor<T> rows_of(const Tensor<T>& table, const Ids& ids) {
  return embedding(Var<T>(table), ids).value().reshape({ids.shape.size(), table.shape()[1]});
}

/// Puts contributions together: each position has a direction, and a component adds its product
/// with it.
template <Real T>
class Sum {
 public:
  /// The directions are W_U[target] through the last norm, whose input is `stream` (B,T,C).
  Sum(const Decoder<T>& model, const Ids& targets, const Tensor<T>& stream)
      : shape_(targets.shape),
        directions_(before_norm(in_double(rows_of(output_table(model), targets)), model.ln_f)) {
    const Index c = stream.shape().last();
    double* rows = directions_.data();
    parallel_rows(shape_.size(), c, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const double scale = inverse_deviation(stream.data() + i * c, c);
        for (Index j = 0; j < c; ++j) rows[i * c + j] *= scale;
      }
    });
  }
  [[nodiscard]] const Tensor<double>& directions() const { return directions_; }

  /// A component x whose rows are those of positions (N,C), or begin again after the last.
  void add(std::string name, const Tensor<T>& x) {
    add(std::move(name), x, directions_, 0, x.shape().last());
  }
  /// The columns begin .. begin + width of x, by the same columns of other directions.
  void add(std::string name, const Tensor<T>& x, const Tensor<double>& directions, Index begin,
           Index width) {
    const Index c = x.shape().last(), rows = x.shape().rows();
    std::vector<double> values(static_cast<std::size_t>(shape_.size()));
    parallel_rows(shape_.size(), width, [&](Index from, Index to) {
      for (Index i = from; i < to; ++i) {
        const T* a = x.data() + i % rows * c + begin;
        const double* b = directions.data() + i * c + begin;
        double& sum = values[static_cast<std::size_t>(i)];
        for (Index j = 0; j < width; ++j) sum += static_cast<double>(a[j]) * b[j];
      }
    });
    names_.push_back(std::move(name));
    values_.insert(values_.end(), values.begin(), values.end());
  }
  /// With the model's logits (B,T,V), of which the targets' are looked up.
  [[nodiscard]] Attribution result(const Tensor<T>& logits, const Ids& targets) const {
    const auto n = static_cast<Index>(names_.size()), positions = shape_.size();
    Attribution all{names_, Tensor<double>({n, shape_[0], shape_[1]}, values_),
                    Tensor<double>::uninitialized(shape_), Tensor<double>::uninitialized(shape_)};
    double *logit = all.logits.data(), *rest = all.remainder.data();
    for (Index i = 0; i < positions; ++i) {
      const Id target = targets.values[static_cast<std::size_t>(i)];
      logit[i] = static_cast<double>(logits.data()[i * logits.shape().last() + target]);
      double sum = 0;
      for (Index k = 0; k < n; ++k) sum += values_[static_cast<std::size_t>(k * positions + i)];
      rest[i] = logit[i] - sum;
    }
    return all;
  }

 private:
  Shape shape_;
  Tensor<double> directions_;
  std::vector<std::string> names_;
  std::vector<double> values_;
};

}  // namespace

template <Real T>
Attribution attribute_logits(const Decoder<T>& model, const Ids& ids, const Ids& targets) {
  require(ids.shape == targets.shape, "attribute_logits: ids {} and targets {} do not fit",
          ids.shape, targets.shape);
  const Index layers = model.config.layers, c = model.config.width, d = c / model.config.heads;
  const auto mlp_name = [](Index i) { return fmt::format("blocks.{}.mlp.out", i); };
  const std::string stream = fmt::format("blocks.{}.resid_post", layers - 1);
  std::set<std::string, std::less<>> names{stream};
  for (Index i = 0; i < layers; ++i) {
    names.insert(attention_name(i, "z"));
    if (model.blocks[static_cast<std::size_t>(i)].mlp) names.insert(mlp_name(i));
  }
  Recording<T> seen(names);
  const Tensor<T> logits = model({.probe = &seen}, ids).value();

  Sum<T> sum(model, targets, seen[stream]);
  sum.add("embed", rows_of(model.tok.weight.value, ids));
  std::vector<Id> places(static_cast<std::size_t>(ids.shape[1]));
  std::iota(places.begin(), places.end(), 0);
  sum.add("position", rows_of(model.pos.weight.value, Ids({ids.shape[1]}, places)));
  for (Index i = 0; i < layers; ++i) {
    const Block<T>& block = model.blocks[static_cast<std::size_t>(i)];
    // <W_O z, direction> = <z, W_O^T direction>: no head's result is formed.
    Tensor<double> before_o = Tensor<double>::uninitialized(sum.directions().shape());
    gemm<double>(1, as_rows(sum.directions()), as_rows(in_double(block.attn.w_o.weight.value)), 0,
                 as_rows(before_o));
    for (Index h = 0; h < block.attn.heads; ++h)
      sum.add(name_of({i, h}), seen[attention_name(i, "z")], before_o, h * d, d);
    if (const Tensor<T>& bias = block.attn.w_o.bias.value; !bias.empty())
      sum.add(fmt::format("attn bias {}", i), bias);
    if (block.mlp) sum.add(fmt::format("mlp {}", i), seen[mlp_name(i)]);
  }
  if (const Tensor<T>& bias = model.ln_f.bias.value; !bias.empty())
    sum.add("norm bias", bias, in_double(rows_of(output_table(model), targets)), 0, c);
  return sum.result(logits, targets);
}

template Attribution attribute_logits(const Decoder<float>&, const Ids&, const Ids&);
template Attribution attribute_logits(const Decoder<double>&, const Ids&, const Ids&);

}  // namespace headwise::study
