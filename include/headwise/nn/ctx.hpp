// What a forward pass needs besides its input, and how one watches it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headwise/ops/key_values.hpp"
#include "headwise/ops/ops.hpp"

namespace headwise {

/// Somebody who watches a forward pass, and may change it. Asked by the activation's full name,
/// e.g. "blocks.1.attn.q"; nothing is put together for names that nobody wants. Watching changes no
/// bit.
template <Real T>
struct Probe {
  virtual ~Probe() = default;
  /// The names it wants, if it has a list of them: then a pass that has no such activation throws
  /// UsageError, see checked_pass().
  [[nodiscard]] virtual std::vector<std::string> names() const { return {}; }
  /// Whether it wants the activation of that name; by default, whether that is in names().
  [[nodiscard]] virtual bool wants(std::string_view name) const;
  /// The activation x; what is returned, of the same shape, goes on in its place.
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
  /// x, or what the probe makes of it. Every activation of interest passes through here. Throws
  /// ShapeError, by the activation's name, when that has another shape.
  [[nodiscard]] Var<T> tap(std::string_view what, Var<T> x) const {
    return probe == nullptr ? x : shown(what, std::move(x));
  }
  /// "blocks.1.attn.q" for what = "q".
  [[nodiscard]] std::string path(std::string_view what) const;

 private:
  [[nodiscard]] Var<T> shown(std::string_view what, Var<T> x) const;
};

/// Passes everything on to a probe, and notes which names a forward pass has.
template <Real T>
class NameCheck : public Probe<T> {
 public:
  explicit NameCheck(Probe<T>& to) : to_(to) {}

  [[nodiscard]] bool wants(std::string_view name) const override;
  Var<T> at(std::string_view name, Var<T> x) override { return to_.at(name, std::move(x)); }
  bool pattern(std::string_view name, Tensor<T>& p) override { return to_.pattern(name, p); }
  /// Throws UsageError for the first of the probe's names() that did not come, with the nearest of
  /// those that did.
  void check() const;

 private:
  Probe<T>& to_;
  mutable std::vector<std::string> seen_;  // in order, some twice
};

/// pass(ctx), a whole forward pass. Where there is a probe, throws UsageError for a name of its
/// names() that no activation had.
template <Real T, class Pass>
Var<T> checked_pass(const Ctx<T>& ctx, Pass pass) {
  if (ctx.probe == nullptr) return pass(ctx);
  NameCheck<T> check(*ctx.probe);
  Ctx<T> watched = ctx;
  watched.probe = &check;
  Var<T> y = pass(std::as_const(watched));
  check.check();
  return y;
}

extern template struct Probe<float>;
extern template struct Probe<double>;
extern template struct Ctx<float>;
extern template struct Ctx<double>;
extern template class NameCheck<float>;
extern template class NameCheck<double>;

}  // namespace headwise
