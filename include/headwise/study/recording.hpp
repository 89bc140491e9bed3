// Keeps what a forward pass computed on its way.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "headwise/nn/ctx.hpp"

namespace headwise::study {

/// Keeps the activations of the given full names, such as "blocks.1.attn.pattern" or "final", of
/// the last forward pass it watched. Watching changes no bit.
template <Real T>
class Recording : public Probe<T> {
 public:
  explicit Recording(std::set<std::string, std::less<>> names) : names_(std::move(names)) {}

  [[nodiscard]] std::vector<std::string> names() const override {
    return {names_.begin(), names_.end()};
  }
  [[nodiscard]] bool wants(std::string_view name) const override { return names_.contains(name); }
  Var<T> at(std::string_view name, Var<T> x) override {
    kept_.insert_or_assign(std::string(name), x.value());
    return x;
  }
  bool pattern(std::string_view name, Tensor<T>& p) override {
    kept_.insert_or_assign(std::string(name), p);
    return false;
  }
  /// The activation of that name; a pattern is (B,H,T,S). Throws ShapeError when no forward pass
  /// showed it.
  [[nodiscard]] const Tensor<T>& operator[](std::string_view name) const {
    const auto at = kept_.find(name);
    require(at != kept_.end(), "recording: no activation {} was shown", name);
    return at->second;
  }

 private:
  std::set<std::string, std::less<>> names_;
  std::map<std::string, Tensor<T>, std::less<>> kept_;
};

}  // namespace headwise::study
