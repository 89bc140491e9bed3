#include "autograd/audit.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/slope.hpp"
#include "autograd/thrown.hpp"
#include "headwise/core/random.hpp"

namespace headwise {
namespace {

/// The largest difference between two tensors of one shape, and where: 0 when all bits are the
/// same, infinity for a NaN that is on one side only.
struct Gap {
  double most = 0;
  Index at = 0;
};
template <Real T>
Gap gap(const Tensor<T>& a, const Tensor<T>& b) {
  Gap g;
  if (a.size() != b.size()) return {HUGE_VAL, 0};  // one of them never arrived
  for (Index i = 0; i < a.size(); ++i) {
    const T x = a.data()[i], z = b.data()[i];
    if (std::memcmp(&x, &z, sizeof x) == 0) continue;
    const double d = std::fabs(static_cast<double>(x) - static_cast<double>(z));
    if (std::isnan(d) || d > g.most) g = {std::isnan(d) ? HUGE_VAL : d, i};
    if (g.most == 0) g.at = i;  // 0 and -0
  }
  return g;
}

template <Real T>
class Auditor {
 public:
  Auditor(const Subject<T>& subject, const Seen<T>& seen, const GradOptions& options)
      : subject_(subject), seen_(seen), options_(options), w_(projection(seen.y.shape())) {}

  Audit<T> run() {
    audit_.gradients.resize(seen_.values.size());
    check_inputs();
    if (audit_.comparable) check_result();
    if (audit_.comparable) see_again("forward pass");
    if (!audit_.comparable || seen_.place < 0) return std::move(audit_);
    check_backward();
    if (audit_.comparable) check_addition();
    return std::move(audit_);
  }

 private:
  [[nodiscard]] Index count() const { return static_cast<Index>(seen_.values.size()); }

  template <class... A>
  void problem(fmt::format_string<A...> text, A&&... args) {
    audit_.problems.push_back(fmt::format(text, std::forward<A>(args)...));
  }

  /// What is not finite in a result has its reason there. A frozen parameter is a constant, where
  /// an infinity may be meant.
  void check_inputs() {
    for (Index place = 0; place < count(); ++place)
      if (seen_.is_input(place))
        require_number(name_at(subject_, seen_, place), seen_.value(place),
                       [](T v) { return std::isfinite(v); });
    for (const auto& [name, param] : subject_.params)
      if (!param->trainable) require_number(name, param->value, [](T v) { return !std::isnan(v); });
  }

  void require_number(const std::string& name, const Tensor<T>& x, bool (*fine)(T)) {
    const auto values = x.values();
    const auto odd = std::find_if_not(values.begin(), values.end(), fine);
    if (odd == values.end()) return;
    audit_.comparable = false;
    problem("{} is {} at element {} of {}", name, std::isnan(*odd) ? "NaN" : "infinite",
            odd - values.begin(), x.shape());
  }

  void check_result() {
    for (Index i = 0; i < seen_.y.size(); ++i) {
      const double v = static_cast<double>(seen_.y.data()[i]);
      if (std::isfinite(v)) continue;
      audit_.comparable = false;
      if (std::isnan(v)) {
        audit_.notes.clear();
        return problem("the result is NaN at element {} of {}", i, seen_.y.shape());
      }
      if (audit_.notes.empty())
        audit_.notes.push_back(
            fmt::format("the result overflows: {} at element {} of {}", v, i, seen_.y.shape()));
    }
  }

  void see_again(const char* after) {
    try {
      check_repetition(see(subject_), after);
    } catch (...) {
      audit_.comparable = false;
      problem("not deterministic: another call with the same inputs throws '{}' after the {}",
              thrown(), after);
    }
  }

  /// That another pass sees what the first one saw: inputs first, since whoever changes them
  /// changes all that follows.
  void check_repetition(const Seen<T>& again, const char* after) {
    const auto same_way = [](const auto& a, const auto& b) {
      return a.name == b.name && a.shape == b.shape && a.inputs == b.inputs;
    };
    for (std::size_t i = 0; i < std::min(again.values.size(), seen_.values.size()); ++i) {
      const auto place = static_cast<Index>(i);
      if (!seen_.is_input(place) || again.values[i].shape() != seen_.values[i].shape()) continue;
      const Gap g = gap(seen_.values[i], again.values[i]);
      if (g.most == 0) continue;
      audit_.comparable = false;
      problem("{} does not come back as it was: element {} was {:.9g}, is {:.9g} after the {}",
              name_at(subject_, seen_, place), g.at, seen_.values[i].data()[g.at],
              again.values[i].data()[g.at], after);
    }
    if (!audit_.comparable) return;
    const bool same = again.y.shape() == seen_.y.shape() &&
                      std::equal(again.entries.begin(), again.entries.end(), seen_.entries.begin(),
                                 seen_.entries.end(), same_way);
    audit_.comparable = false;
    if (!same)
      return problem("not deterministic: another call with the same inputs takes another way");
    // Every record, the result last: what is hidden from the result may yet differ.
    const auto differs = [&](const std::string& what, const Tensor<T>& one,
                             const Tensor<T>& other) {
      const Gap g = gap(one, other);
      if (g.most <= options_.nondet_tol) return false;
      problem(
          "not deterministic: two calls with the same inputs give {} that differ by up to {:.3g} "
          "(element {}: {:.9g} and {:.9g}); is a random stream shared by the calls?",
          what, g.most, g.at, one.data()[g.at], other.data()[g.at]);
      return true;
    };
    if (differs("results", seen_.y, again.y)) return;
    for (std::size_t i = 0; i < seen_.values.size(); ++i)
      if (differs("values of " + name_at(subject_, seen_, static_cast<Index>(i)), seen_.values[i],
                  again.values[i]))
        return;
    audit_.comparable = true;
  }

  void check_backward() {
    std::vector<Tensor<T>> again, zero;
    const char* which = "";
    try {
      audit_.gradients = gradients(subject_, w_);
      which = "not deterministic: a second backward pass: ";
      again = gradients(subject_, w_);
      which = "a gradient of zero for the result: ";
      zero = gradients(subject_, Tensor<double>::zeros(seen_.y.shape()));
    } catch (...) {
      audit_.comparable = false;
      problem("{}{}", which, thrown());
      return blame_thrower();
    }
    for (Index i = 0; i < count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!seen_.is_input(i) || audit_.gradients[at].empty()) continue;
      const Gap g = gap(audit_.gradients[at], again[at]);
      if (again[at].empty()) {
        problem("not deterministic: a second backward pass gives no gradient of {}",
                name_at(subject_, seen_, i));
        continue;
      }
      if (g.most > options_.nondet_tol)
        problem(
            "not deterministic: two backward passes give gradients of {} that differ by up to "
            "{:.3g} "
            "(element {}: {:.9g} and {:.9g})",
            name_at(subject_, seen_, i), g.most, g.at, audit_.gradients[at].data()[g.at],
            again[at].data()[g.at]);
      const auto values = zero[at].values();
      const auto odd = std::find_if(values.begin(), values.end(), [](T v) { return !(v == 0); });
      if (odd != values.end() && std::isfinite(largest(audit_.gradients[at])))
        problem("a gradient of zero for the result gives {:.9g} for {}, element {}", *odd,
                name_at(subject_, seen_, i), odd - values.begin());
    }
    see_again("backward pass");
  }

  /// That every record's backward adds to the gradients that are there.
  void check_addition() {
    Index record = 0;
    try {
      add_to_each(record);
    } catch (...) {
      audit_.comparable = false;
      problem("the backward of record {} ({}) alone: {}", record,
              seen_.entries[static_cast<std::size_t>(record)].name, thrown());
      blame_thrower();
    }
  }

  void add_to_each(Index& record) {
    Tape<T> fresh, filled;
    const Var<T> one = subject_.forward(fresh), other = subject_.forward(filled);
    for (; record < count(); ++record) {
      if (seen_.is_input(record)) continue;
      const auto& inputs = seen_.entries[static_cast<std::size_t>(record)].inputs;
      const Tensor<T> dy = rounded<T>(projection(seen_.value(record).shape()));
      const auto own = fresh.pull(record, dy);
      std::vector<Tensor<T>> before(inputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] < 0) continue;
        const double size = own[i].empty() ? 0 : largest(own[i]);
        Rng rng(static_cast<std::uint64_t>(inputs[i]));  // an input that comes twice: the same
        before[i] = normal_tensor<T>(seen_.value(inputs[i]).shape(),
                                     size > 0 && std::isfinite(size) ? size : 1, rng);
      }
      const auto after = filled.pull(record, dy, before);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i] >= 0 && !adds(before[i], own[i], after[i])) {
          blame(record, static_cast<Index>(i));
          break;
        }
    }
  }

  static bool adds(const Tensor<T>& before, const Tensor<T>& empty, const Tensor<T>& after) {
    const double allowed = 1e5 * Precision<T>::kUnit * largest(before);
    for (Index i = 0; i < before.size(); ++i) {
      const double own = empty.empty() ? 0 : static_cast<double>(empty.data()[i]);
      const double lost =
          static_cast<double>(after.data()[i]) - static_cast<double>(before.data()[i]) - own;
      // What is not a number is found by its value.
      if (std::isfinite(own) && !(std::fabs(lost) <= allowed)) return false;
    }
    return true;
  }

  void blame(Index record, Index input) {
    WrongRecord wrong = record_at(subject_, seen_, record);
    wrong.input = input;
    const std::string name = wrong.inputs[static_cast<std::size_t>(input)];
    problem("record {} ({}) writes over the gradient of {} that was there, instead of adding to it",
            record, wrong.op, name);
    if (audit_.diagnosis.fault != Fault::none) return;  // the first on the tape
    audit_.diagnosis.fault = Fault::accumulation;
    audit_.diagnosis.reason =
        fmt::format("the backward assigns the gradient of {} where it should add to it", name);
    audit_.diagnosis.inputs_affected = {name + ": everything"};
    audit_.diagnosis.record = std::move(wrong);
  }

  /// The first record whose backward does not run.
  void blame_thrower() {
    for (Index i = 0; i < count(); ++i) {
      if (seen_.is_input(i)) continue;
      try {
        gradients_of<T>(subject_, i, projection(seen_.value(i).shape()));
      } catch (...) {
        WrongRecord wrong = record_at(subject_, seen_, i);
        const Shape& result = wrong.shape;
        // A gradient of the result's shape for an input that was broadcast: it was not summed.
        const auto was_broadcast = [&](Index place) {
          if (place < 0) return false;
          const Shape& s = seen_.value(place).shape();
          if (s.rank() > result.rank() || s.size() >= result.size()) return false;
          for (Index axis = -s.rank(); axis < 0; ++axis)
            if (s[axis] != result[axis] && s[axis] != 1) return false;
          return true;
        };
        const auto& inputs = seen_.entries[static_cast<std::size_t>(i)].inputs;
        const auto found = std::find_if(inputs.begin(), inputs.end(), was_broadcast);
        audit_.diagnosis.fault = found != inputs.end() ? Fault::reduction : Fault::other;
        audit_.diagnosis.reason = thrown();
        if (found != inputs.end()) {
          wrong.input = found - inputs.begin();
          audit_.diagnosis.reason += ": the sum over the broadcast axes is missing";
        }
        audit_.diagnosis.record = std::move(wrong);
        return;
      }
    }
  }

  const Subject<T>& subject_;
  const Seen<T>& seen_;
  const GradOptions& options_;
  Tensor<double> w_;
  Audit<T> audit_;
};

}  // namespace

template <Real T>
std::string name_at(const Subject<T>& subject, const Seen<T>& seen, Index place) {
  if (place < 0) return "a constant";
  const auto& entry = seen.entries[static_cast<std::size_t>(place)];
  if (entry.name == "leaf") {
    const auto end = seen.entries.begin() + place;
    return fmt::format("input {}", std::count_if(seen.entries.begin(), end,
                                                 [](const auto& e) { return e.name == "leaf"; }));
  }
  if (entry.name != "param") return fmt::format("record {} ({})", place, entry.name);
  for (const auto& [name, param] : subject.params)
    if (param == entry.param) return name;
  return fmt::format("record {} (a parameter without a name)", place);
}

template <Real T>
std::vector<Tensor<T>> gradients(const Subject<T>& subject, const Tensor<double>& w) {
  Tape<T> tape;
  const Var<T> y = subject.forward(tape);
  tape.propagate(y, rounded<T>(w));
  std::vector<Tensor<T>> all;
  for (Index i = 0; i < tape.size(); ++i) all.push_back(tape.gradient_at(i));
  return all;
}

template <Real T>
std::vector<Tensor<T>> gradients_of(const Subject<T>& subject, Index record,
                                    const Tensor<double>& w, std::vector<Tensor<T>> before) {
  Tape<T> tape;
  const Var<T> y = subject.forward(tape);
  return tape.pull(record, rounded<T>(w), std::move(before));
}

template <Real T>
Tensor<T> among(const std::vector<Tensor<T>>& gradients, const std::vector<Index>& inputs,
                Index place) {
  const auto found = std::find(inputs.begin(), inputs.end(), place);
  return found == inputs.end() ? Tensor<T>()
                               : gradients[static_cast<std::size_t>(found - inputs.begin())];
}

template <Real T>
WrongRecord record_at(const Subject<T>& subject, const Seen<T>& seen, Index record) {
  const auto& entry = seen.entries[static_cast<std::size_t>(record)];
  WrongRecord found;
  found.number = record;
  found.of = static_cast<Index>(seen.entries.size());
  found.op = entry.name;
  found.shape = entry.shape;
  for (const Index input : entry.inputs) found.inputs.push_back(name_at(subject, seen, input));
  return found;
}

template <Real T>
Audit<T> audit(const Subject<T>& subject, const Seen<T>& seen, const GradOptions& options) {
  return Auditor<T>(subject, seen, options).run();
}

#define HEADWISE_INSTANTIATE(T)                                                                 \
  template std::string name_at(const Subject<T>&, const Seen<T>&, Index);                       \
  template std::vector<Tensor<T>> gradients(const Subject<T>&, const Tensor<double>&);          \
  template std::vector<Tensor<T>> gradients_of(const Subject<T>&, Index, const Tensor<double>&, \
                                               std::vector<Tensor<T>>);                         \
  template Tensor<T> among(const std::vector<Tensor<T>>&, const std::vector<Index>&, Index);    \
  template WrongRecord record_at(const Subject<T>&, const Seen<T>&, Index);                     \
  template Audit<T> audit(const Subject<T>&, const Seen<T>&, const GradOptions&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
