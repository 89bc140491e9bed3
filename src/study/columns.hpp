// A head's part of an activation whose heads lie side by side, such as z.
#pragma once

#include <span>

#include "headwise/core/tensor.hpp"
#include "headwise/models/decoder.hpp"
#include "headwise/study/head.hpp"

namespace headwise::study {

/// The full name of the stream before a layer.
inline std::string stream_name(Index layer) { return fmt::format("blocks.{}.resid_pre", layer); }

/// Throws ShapeError, beginning with `where`, for a head that the model does not have.
inline void require_head(std::string_view where, HeadId h, const ModelConfig& config) {
  require(h.layer >= 0 && h.layer < config.layers && h.head >= 0 && h.head < config.heads,
          "{}: there is no head {} in {} layers of {} heads", where, name_of(h), config.layers,
          config.heads);
}

/// x (..., C) with write(row, numbers) called for the D numbers of a head in each row.
template <Real T, class F>
Var<T> with_head(Var<T> x, Index head, Index heads, F write) {
  Tensor<T> y = x.value();
  x = {};  // so that y, the only owner, need not be copied
  const Index rows = y.shape().rows(), c = y.shape().last(), d = c / heads;
  T* at = y.data() + head * d;
  for (Index r = 0; r < rows; ++r, at += c) write(r, std::span<T>(at, static_cast<std::size_t>(d)));
  return Var<T>(std::move(y));
}

/// The D numbers of a head in one row of x (..., C).
template <Real T>
std::span<const T> head_of_row(const Tensor<T>& x, Index row, Index head, Index heads) {
  const Index c = x.shape().last(), d = c / heads;
  return x.values().subspan(static_cast<std::size_t>(row * c + head * d),
                            static_cast<std::size_t>(d));
}

}  // namespace headwise::study
