#include <algorithm>

#include "headwise/core/gemm.hpp"
#include "headwise/core/parallel.hpp"
#include "headwise/study/circuits.hpp"
#include "study/folded.hpp"

namespace headwise::study {
namespace {

constexpr Index kRows = 1024;  // of a token table that are converted to double at a time
constexpr Index kTokens = 32;  // whose logits one task holds at a time

/// The tokens to look at: all V, or `most` of them, evenly spread.
std::vector<Index> chosen(Index v, Index most) {
  const Index n = most == 0 ? v : std::min(v, most);
  std::vector<Index> tokens;
  for (Index i = 0; i < n; ++i) tokens.push_back(i * v / n);
  return tokens;
}

/// What each head writes, seen from each token's logit: W_U W_O, heads side by side, (V,C).
template <Real T>
Tensor<double> seen_by_logits(const Decoder<T>& model, const FoldedAttention& attn) {
  const Tensor<T>& table = output_table(model);
  const Index v = table.shape()[0], c = table.shape()[1];
  Tensor<double> seen = Tensor<double>::uninitialized({v, c});
  for (Index i = 0; i < v; i += kRows) {
    const Index rows = std::min(kRows, v - i);
    const Tensor<double> read = before_norm(in_double(table, i, rows), model.ln_f);
    gemm<double>(1, as_rows(read), as_rows(attn.o), 0, as_rows(seen).block(i, 0, rows, c));
  }
  return seen;
}

/// How many logits count as larger than that of `own`.
Index rank_of(const double* logits, Index v, Index own) {
  const double x = logits[own];
  Index larger = 0;
  for (Index i = 0; i < v; ++i) larger += logits[i] > x || (logits[i] == x && i < own) ? 1 : 0;
  return larger;
}

}  // namespace

template <Real T>
std::vector<TopCopying> top_copying(const Decoder<T>& model, const Tensor<T>& embedding,
                                    Index most) {
  const Index v = model.config.vocab, c = model.config.width, heads = model.config.heads;
  require(embedding.shape() == Shape{v, c}, "top_copying: an embedding {} is not (V,C), {}",
          embedding.shape(), Shape{v, c});
  require<UsageError>(most >= 0, "top_copying: {} tokens are less than none", most);
  const std::vector<Index> tokens = chosen(v, most);
  const Index n = static_cast<Index>(tokens.size()), d = c / heads;
  Tensor<double> sources = Tensor<double>::uninitialized({n, c}), values = sources;
  double* to = sources.data();
  for (Index i = 0; i < n; ++i)
    std::copy_n(embedding.data() + tokens[static_cast<std::size_t>(i)] * c, c, to + i * c);

  std::vector<TopCopying> all;
  const auto room = static_cast<std::size_t>(kTokens * v);
  std::vector<double> logits(static_cast<std::size_t>(workers()) * room);
  std::vector<Index> ranks(static_cast<std::size_t>(n));
  for (Index layer = 0; layer < model.config.layers; ++layer) {
    const FoldedAttention attn(model.blocks[static_cast<std::size_t>(layer)]);
    const Tensor<double> seen = seen_by_logits(model, attn);
    gemm<double>(1, as_rows(std::as_const(sources)), as_rows(attn.v).t(), 0, as_rows(values));
    const Mat<const double> written = as_rows(std::as_const(values));
    for (Index h = 0; h < heads; ++h) {
      parallel_for(n, kTokens, [&](Index begin, Index end) {
        double* const column = logits.data() + static_cast<std::size_t>(worker()) * room;
        gemm_tile<double>(1, written.block(begin, h * d, end - begin, d),
                          as_rows(seen).block(0, h * d, v, d).t(), 0, {column, end - begin, v, v});
        for (Index i = begin; i < end; ++i) {
          const auto token = static_cast<std::size_t>(i);
          ranks[token] = rank_of(column + (i - begin) * v, v, tokens[token]);
        }
      });
      const auto share = [&](Index below) {
        return static_cast<double>(std::count_if(ranks.begin(), ranks.end(),
                                                 [&](Index rank) { return rank < below; })) /
               static_cast<double>(n);
      };
      all.push_back({{layer, h}, share(1), share(5)});
    }
  }
  return all;
}

template <Real T>
Tensor<T> effective_embedding(const Decoder<T>& model) {
  const Block<T>& first = model.blocks[0];
  require<UsageError>(first.mlp.has_value(), "effective_embedding: the model has no MLP");
  const Var<T> table(model.tok.weight.value);
  const Index v = table.shape()[0];
  std::vector<Var<T>> parts;
  for (Index i = 0; i < v; i += kRows) {  // the MLP is four times as wide
    const Var<T> x = slice(table, 0, i, std::min(v, i + kRows));
    parts.push_back(x + (*first.mlp)({}, (*first.ln2)({}, x)));
  }
  return concat(parts, 0).value();
}

#define HEADWISE_COPYING(T)                                                                 \
  template std::vector<TopCopying> top_copying(const Decoder<T>&, const Tensor<T>&, Index); \
  template Tensor<T> effective_embedding(const Decoder<T>&);
HEADWISE_COPYING(float)
HEADWISE_COPYING(double)
#undef HEADWISE_COPYING

}  // namespace headwise::study
