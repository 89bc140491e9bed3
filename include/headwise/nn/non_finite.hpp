// Where in a module a number arose that is not finite.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headwise/autograd/non_finite.hpp"
#include "headwise/nn/ctx.hpp"
#include "headwise/nn/visit.hpp"

namespace headwise {

/// Wants nothing, and notes where on the tape each activation stands.
template <Real T>
struct NamePlaces : Probe<T> {
  const Tape<T>* tape = nullptr;
  mutable std::vector<std::pair<Index, std::string>> names{};  ///< size of the tape when it came

  [[nodiscard]] bool wants(std::string_view name) const override {
    names.emplace_back(tape->size(), name);
    return false;
  }
  /// "before blocks.0.attn.z": the first activation that comes after a place.
  [[nodiscard]] std::string scope(Index place) const {
    for (const auto& [size, name] : names)
      if (size > place) return "before " + name;
    return names.empty() ? "" : "after " + names.back().second;
  }
};

/// The first number of a module's pass that is not finite, where it arose and in which op; see
/// first_non_finite() of a Subject.   loss(ctx) -> Var<T>, a scalar; `random`: where its stream of
/// random numbers stood, or none.
///   if (const auto found = first_non_finite<float>(
///           model, [&](const Ctx<float>& ctx) { return model.loss(ctx, ids, targets); }))
///     report(found->describe());
template <Real T, class M, class Loss>
std::optional<NonFinite> first_non_finite(M& module, Loss loss,
                                          const std::optional<Rng>& random = std::nullopt,
                                          T seed = 1) {
  Subject<T> subject;
  for_each_param(module, [&](const std::string& name, const Param<T>& p) {
    subject.params.emplace_back(name, &p);
  });
  NamePlaces<T> places;
  subject.forward = [&](Tape<T>& tape) -> Var<T> {
    places.tape = &tape;
    std::optional<Rng> draws = random;
    return loss(Ctx<T>{.tape = &tape, .probe = &places, .random = draws ? &*draws : nullptr});
  };
  return first_non_finite(subject, seed, [&](Index place) { return places.scope(place); });
}

}  // namespace headwise
