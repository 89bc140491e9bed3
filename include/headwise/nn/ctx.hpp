// What a forward pass needs besides its input, and how one watches it.
#pragma once

#include <string>
#include <string_view>

#include "headwise/ops/key_values.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {

/// Somebody who watches a forward pass, and may change it. Asked by the activation's full name,
/// e.g. "blocks.1.attn.q"; nothing is put together for names that nobody wants. Watching changes no
/// bit.
template <Real T>
struct Probe {
  virtual ~Probe() = default;
  [[nodiscard]] virtual bool wants(std::string_view name) const = 0;
  /// The activation x; what is returned goes on in its place.
  virtual Var<T> at(std::string_view /*name*/, Var<T> x) { return x; }
  /// The pattern (B,H,T,S) of attention, "blocks.1.attn.pattern"; see PatternTap.
  virtual bool pattern(std::string_view /*name*/, Tensor<T>& /*p*/) { return false; }
};

/// A null member means "off": the same line of code trains, infers and is watched.
template <Real T>
struct Ctx {
  Tape<T>* tape = nullptr;        ///< null: inference, nothing is recorded
  Probe<T>* probe = nullptr;      ///< null: nobody is watching
  Rng* random = nullptr;          ///< null: no dropout
  KeyValues<T>* cache = nullptr;  ///< of the layer at hand; null: nothing is kept for later calls
  const Ctx* parent = nullptr;    ///< with `name` and `index`, the path so far
  std::string_view name{};
  Index index = -1;

  /// The context of a part. Lives on the stack, below its parent.
  [[nodiscard]] Ctx in(std::string_view part, Index i = -1) const {
    return {tape, probe, random, cache, this, part, i};
  }
  [[nodiscard]] Var<T> use(const Param<T>& p) const {
    return tape ? tape->use(p) : Var<T>(p.value);
  }
  /// Whether tap(what, ...) has somebody to show it to: what nobody sees need not be there.
  [[nodiscard]] bool wants(std::string_view what) const {
    return probe != nullptr && probe->wants(path(what));
  }
  /// x, or what the probe makes of it. Every activation of interest passes through here.
  [[nodiscard]] Var<T> tap(std::string_view what, Var<T> x) const {
    if (probe == nullptr) return x;
    const std::string full = path(what);
    return probe->wants(full) ? probe->at(full, std::move(x)) : x;
  }
  /// "blocks.1.attn.q" for what = "q".
  [[nodiscard]] std::string path(std::string_view what) const;
};

extern template struct Ctx<float>;
extern template struct Ctx<double>;

}  // namespace headwise
