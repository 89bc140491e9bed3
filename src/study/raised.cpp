#include "headwise/study/raised.hpp"

#include <algorithm>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "study/folded.hpp"

namespace headwise::study {
namespace {

/// The mean row of a table (V,C).
template <Real T>
std::vector<double> mean_row(const Tensor<T>& table) {
  const Index v = table.shape()[0], c = table.shape()[1];
  std::vector<double> mean(static_cast<std::size_t>(c));
  for (Index i = 0; i < v; ++i)
    for (Index j = 0; j < c; ++j)
      mean[static_cast<std::size_t>(j)] += static_cast<double>(table.data()[i * c + j]);
  for (double& x : mean) x /= static_cast<double>(v);
  return mean;
}

/// What reads the logits of some tokens, less their mean over the vocabulary, from the stream:
/// (n,C).
template <Real T>
Tensor<double> directions(const Decoder<T>& model, const std::vector<Id>& tokens,
                          const std::vector<double>& mean) {
  const Ids ids({static_cast<Index>(tokens.size())}, tokens);
  Tensor<double> rows = in_double(embedding(Var<T>(output_table(model)), ids).value());
  double* row = rows.data();
  for (Index i = 0; i < rows.size(); ++i)
    row[i] -= mean[static_cast<std::size_t>(i % rows.shape()[1])];
  return before_norm(std::move(rows), model.ln_f);
}

/// Amounts, of which those below 0 are none, as shares of their sum.
void to_shares(double* row, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += row[i] = std::max(0.0, row[i]);
  for (Index i = 0; i < n && sum > 0; ++i) row[i] /= sum;
}

}  // namespace

template <Real T>
std::vector<std::vector<Raised>> raised_tokens(const Decoder<T>& model, Index layer, const Ids& ids,
                                               const Tensor<T>& pattern, const Tensor<T>& z,
                                               std::span<const Index> lengths) {
  require(layer >= 0 && layer < model.config.layers, "raised_tokens: no layer {}, of {} layers",
          layer, model.config.layers);
  require(ids.shape.rank() == 2, "raised_tokens: ids {} are not (B,T)", ids.shape);
  ids.check("raised_tokens");
  const Index batch = ids.shape[0], time = ids.shape[1], c = model.config.width,
              heads = model.config.heads, d = c / heads;
  require(pattern.shape() == Shape{batch, heads, time, time} && z.shape() == Shape{batch, time, c},
          "raised_tokens: ids {}, pattern {} and z {} do not fit {} heads of width {}", ids.shape,
          pattern.shape(), z.shape(), heads, d);
  require(lengths.empty() || std::ssize(lengths) == batch,
          "raised_tokens: {} lengths of {} sequences", lengths.size(), batch);
  for (const Index length : lengths)
    require(length >= 1 && length <= time, "raised_tokens: a length of {}, not 1 to {}", length,
            time);
  const Tensor<double> o =
      in_double(model.blocks[static_cast<std::size_t>(layer)].attn.w_o.weight.value);
  const Tensor<double> results = in_double(z);
  const std::vector<double> mean = mean_row(output_table(model));

  std::vector<std::vector<Raised>> all(static_cast<std::size_t>(heads),
                                       std::vector<Raised>(static_cast<std::size_t>(batch)));
  parallel_for(batch, 1, [&](Index b, Index) {
    const Index length = lengths.empty() ? time : lengths[static_cast<std::size_t>(b)];
    const auto text =
        std::span(ids.values)
            .subspan(static_cast<std::size_t>(b * time), static_cast<std::size_t>(length));
    std::vector<Id> tokens(text.begin(), text.end());
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    const auto n = static_cast<Index>(tokens.size());
    const Tensor<double> read = directions(model, tokens, mean);
    Tensor<double> seen =
        Tensor<double>::uninitialized({n, c});  // W_O from there, heads side by side
    gemm_tile<double>(1, as_rows(read), as_rows(o), 0, as_rows(seen));
    for (Index h = 0; h < heads; ++h) {
      Raised& one = all[static_cast<std::size_t>(h)][static_cast<std::size_t>(b)];
      one.tokens = tokens;
      one.shares = Tensor<double>::uninitialized({length, n});
      gemm_tile<double>(1, as_rows(results).block(b * time, h * d, length, d),
                        as_rows(std::as_const(seen)).block(0, h * d, n, d).t(), 0,
                        as_rows(one.shares));
      double* shares = one.shares.data();
      for (Index i = 0; i < length; ++i) {
        to_shares(shares + i * n, n);
        const T* row = pattern.data() + ((b * heads + h) * time + i) * time;
        const Id token = text[static_cast<std::size_t>(std::max_element(row, row + length) - row)];
        one.attended.push_back(std::lower_bound(tokens.begin(), tokens.end(), token) -
                               tokens.begin());
      }
    }
  });
  return all;
}

template std::vector<std::vector<Raised>> raised_tokens(const Decoder<float>&, Index, const Ids&,
                                                        const Tensor<float>&, const Tensor<float>&,
                                                        std::span<const Index>);
template std::vector<std::vector<Raised>> raised_tokens(const Decoder<double>&, Index, const Ids&,
                                                        const Tensor<double>&,
                                                        const Tensor<double>&,
                                                        std::span<const Index>);

}  // namespace headwise::study
