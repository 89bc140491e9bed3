#include "headwise/autograd/non_finite.hpp"

#include <algorithm>
#include <cmath>

namespace headwise {
namespace {

using OddKind = NonFinite::Kind;

/// The report on a tensor, or nothing when it is finite.
template <Real T>
std::optional<NonFinite> report_on(OddKind kind, std::string name, const Tensor<T>& x) {
  const auto is_odd = [](T v) { return !std::isfinite(v); };
  const auto values = x.values();
  const auto first = std::find_if(values.begin(), values.end(), is_odd);
  if (first == values.end()) return std::nullopt;
  NonFinite found{.kind = kind, .name = std::move(name)};
  found.shape = x.shape();
  found.element = first - values.begin();
  found.value = static_cast<double>(*first);
  found.count = std::count_if(first, values.end(), is_odd);
  return found;
}

/// "linear (4,8) up to 3.1e+38".
template <Real T>
std::string with_size(std::string_view name, const Tensor<T>& x) {
  T most = 0;
  for (const T v : x.values()) most = std::max(most, std::fabs(v));
  return fmt::format("{} {} up to {:.3g}", name, x.shape(), most);
}

/// Keeps every value of a pass, and notes the first that is not finite.
template <Real T>
struct KeepValues : ValueTap<T> {
  std::vector<Tensor<T>> values;
  std::optional<NonFinite> found;

  Tensor<T> at(Index place, Tensor<T> value) override {
    values.push_back(value);
    if (!found) {
      found = report_on(OddKind::value, "", value);
      if (found) found->place = place;
    }
    return value;
  }
};

/// One pass that is looked at.
template <Real T>
class ObservedPass {
 public:
  explicit ObservedPass(const Subject<T>& subject) : subject_(subject) {}

  std::optional<NonFinite> run(T seed) {
    Var<T> loss;
    try {
      loss = subject_.forward(tape_);
    } catch (const std::exception&) {
      if (!kept_.found) throw;  // else it follows from what was found
    }
    if (kept_.found) {
      if (kept_.found->place < tape_.size()) name(*kept_.found);
      return kept_.found;
    }
    require(loss.value().size() == 1, "first_non_finite: the loss has shape {}, not one element",
            loss.shape());
    return tape_.place(loss) < 0 ? std::nullopt : backward(tape_.place(loss), seed, loss.shape());
  }

 private:
  /// Says which op it is, and what that was given.
  void name(NonFinite& found) const {
    const auto& entry = tape_.entry(found.place);
    found.op = entry.name;
    for (const Index input : entry.inputs) {
      if (input < 0) continue;
      const auto& from = tape_.entry(input);
      const std::string param = from.param == nullptr ? "" : name_of(from.param);
      if (!param.empty()) found.name += (found.name.empty() ? "" : ", ") + param;
      found.inputs.push_back(with_size(param.empty() ? from.name : param,
                                       kept_.values[static_cast<std::size_t>(input)]));
    }
  }
  [[nodiscard]] std::string name_of(const Param<T>* p) const {
    for (const auto& [name, param] : subject_.params)
      if (param == p) return name;
    return "a parameter";
  }

  std::optional<NonFinite> backward(Index last, T seed, const Shape& shape) {
    std::vector<Tensor<T>> grads(static_cast<std::size_t>(tape_.size()));
    grads[static_cast<std::size_t>(last)] = Tensor<T>::full(shape, seed);
    for (Index place = last; place >= 0; --place) {
      const Tensor<T> dy = std::exchange(grads[static_cast<std::size_t>(place)], {});
      const std::vector<Index> inputs = tape_.entry(place).inputs;
      if (dy.empty() || inputs.empty()) continue;
      std::vector<Tensor<T>> before;
      for (const Index input : inputs)
        before.push_back(input < 0 ? Tensor<T>() : grads[static_cast<std::size_t>(input)]);
      const std::vector<Tensor<T>> after = tape_.pull(place, dy, std::move(before));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] < 0) continue;
        if (std::optional<NonFinite> found = report_on(OddKind::gradient, "", after[i])) {
          found->place = place;
          found->input = static_cast<Index>(i);
          name(*found);
          found->inputs.insert(found->inputs.begin(), with_size("the gradient of its result", dy));
          return found;
        }
        grads[static_cast<std::size_t>(inputs[i])] = after[i];
      }
    }
    return std::nullopt;
  }

  const Subject<T>& subject_;
  KeepValues<T> kept_;
  Tape<T> tape_{nullptr, &kept_};
};

}  // namespace

std::string NonFinite::describe() const {
  const std::string where = fmt::format("{} at element {} of {}", value, element, shape),
                    of = name.empty() ? "" : fmt::format(" of {}", name),
                    in = scope.empty() ? "" : fmt::format(" ({})", scope);
  std::string text;
  if (kind == OddKind::parameter)
    text = fmt::format("parameter '{}' is {} before the pass", name, where);
  else if (kind == OddKind::value)
    text = fmt::format("op {} '{}'{}{} gave {}", place, op, of, in, where);
  else
    text = fmt::format("the backward of op {} '{}'{}{} gave {}, the gradient of its input {}",
                       place, op, of, in, where, input);
  if (count > 1) text += fmt::format("; {} of {} elements are not finite", count, shape.size());
  if (!inputs.empty()) text += fmt::format("; it was given {}", fmt::join(inputs, ", "));
  return text;
}

template <Real T>
std::optional<NonFinite> first_non_finite(const Subject<T>& subject, T seed,
                                          const std::function<std::string(Index)>& scope) {
  for (const auto& [name, param] : subject.params)
    if (auto found = report_on(OddKind::parameter, name, param->value)) return found;
  std::optional<NonFinite> found = ObservedPass<T>(subject).run(seed);
  if (found && scope) found->scope = scope(found->place);
  return found;
}

template std::optional<NonFinite> first_non_finite(const Subject<float>&, float,
                                                   const std::function<std::string(Index)>&);
template std::optional<NonFinite> first_non_finite(const Subject<double>&, double,
                                                   const std::function<std::string(Index)>&);

}  // namespace headwise
