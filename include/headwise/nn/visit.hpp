// One walk over the parameters of a module: it counts, names, saves, loads, clips and steps them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "headwise/autograd/param.hpp"

namespace headwise {

template <class X>
concept Visitable = requires(X& x) {
  x.visit([](auto&&...) {});
};

/// Calls f("blocks.0.attn.w_q.weight", param) for every parameter inside `module`, in the order of
/// its visit(). The names are the checkpoint's keys: renaming a member changes the file format.
template <class M, class F>
void for_each_param(M& module, F f, const std::string& prefix = "") {
  module.visit([&]<class X>(std::string_view name, X& member) {
    const std::string path =
        prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name);
    if constexpr (Visitable<X>) {
      for_each_param(member, f, path);
    } else if constexpr (requires { member[0]; }) {
      for (std::size_t i = 0; i < member.size(); ++i)
        for_each_param(member[i], f, fmt::format("{}.{}", path, i));
    } else {
      f(path, member);
    }
  });
}

/// Number of trained numbers.
template <class M>
Index parameter_count(M& module) {
  Index count = 0;
  for_each_param(module, [&](const std::string&, auto& p) { count += p.value.size(); });
  return count;
}

}  // namespace headwise
