// A reference to something callable: what std::function would copy, this only points to.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace headwise {

template <class Signature>
class FunctionRef;

/// Valid as long as the callable it was made from. For parameters only, never for members.
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<R, F&, A...>)
      FunctionRef(F&& f)  // NOLINT(bugprone-forwarding-reference-overload): constrained above
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, A... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<A>(args)...);
        }) {}

  R operator()(A... args) const { return call_(object_, std::forward<A>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

}  // namespace headwise
