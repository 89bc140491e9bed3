#include "headwise/autograd/tape.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "headwise/core/parallel.hpp"

namespace headwise {
namespace {

/// sum += x, where a sum that is not there yet just becomes x.
template <Real T>
void accumulate(Tensor<T>& sum, Tensor<T> x) {
  if (sum.empty()) {
    sum = std::move(x);
    return;
  }
  T* out = sum.data();
  const T* in = x.values().data();
  parallel_rows(x.size(), 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) out[i] += in[i];
  });
}

/// What a backward left with its inputs, of which it may have assigned one of another shape.
void require_shapes(const auto& record, const auto& grads, const auto& records) {
  for (std::size_t i = 0; i < record.inputs.size(); ++i) {
    if (record.inputs[i] < 0) continue;
    const auto at = static_cast<std::size_t>(record.inputs[i]);
    require(grads[at].empty() || grads[at].shape() == records[at].shape,
            "backward: '{}' left a gradient {} for its input {} of shape {}", record.name,
            grads[at].shape(), i, records[at].shape);
  }
}

double bytes_of(const Shape& shape, std::size_t each) {
  return static_cast<double>(shape.size()) * static_cast<double>(each);
}

}  // namespace

template <Real T>
Index Grads<T>::slot(Index i) const {
  require<Error>(i >= 0 && i < std::ssize(inputs_),
                 "backward: '{}' asks for the gradient of input {} of {}", op_, i, inputs_.size());
  return inputs_[static_cast<std::size_t>(i)];
}

template <Real T>
Tensor<T>* Grads<T>::operator[](Index i) {
  if (!wants(i)) return nullptr;
  Tensor<T>& g = tape_.grads_[static_cast<std::size_t>(slot(i))];
  if (g.empty()) g = Tensor<T>::zeros(tape_.records_[static_cast<std::size_t>(slot(i))].shape);
  return &g;
}

template <Real T>
Target<T> Grads<T>::into(Index i) {
  if (!wants(i)) return {};
  Tensor<T>& g = tape_.grads_[static_cast<std::size_t>(slot(i))];
  if (!g.empty()) return {&g, T(1)};
  g = Tensor<T>::uninitialized(tape_.records_[static_cast<std::size_t>(slot(i))].shape);
  return {&g, T(0)};
}

template <Real T>
void Grads<T>::add(Index i, Tensor<T> contribution) {
  if (!wants(i)) return;
  const auto& record = tape_.records_[static_cast<std::size_t>(slot(i))];
  require(contribution.shape() == record.shape,
          "backward: gradient {} of input {} ('{}') must have its shape {}", contribution.shape(),
          i, record.name, record.shape);
  accumulate(tape_.grads_[static_cast<std::size_t>(slot(i))], std::move(contribution));
}

template <Real T>
Var<T> Tape<T>::append(Record record, Tensor<T> value) {
  require<Error>(state_ != State::running,
                 "record '{}': this tape is running backward; a gradient is a plain tensor, "
                 "second derivatives are out of scope",
                 record.name);
  require<Error>(state_ == State::recording,
                 "record '{}': this tape was consumed by its backward; take a new one",
                 record.name);
  if (records_.empty()) lap();  // nothing has run so far that an op could have taken time for
  if (tap_ != nullptr) {
    value = tap_->at(size(), std::move(value));
    require(value.shape() == record.shape, "record '{}': a tap put {} in the place of {}",
            record.name, value.shape(), record.shape);
    if (record.param != nullptr) record.replaced = value;
  }
  Var<T> y(std::move(value));
  y.tape_ = self_;
  y.slot_ = static_cast<Index>(records_.size());
  records_.push_back(std::move(record));
  grads_.emplace_back();
  return y;
}

template <Real T>
Var<T> Tape<T>::leaf(Tensor<T> value) {
  return append({{"leaf", value.shape(), {}}}, value);
}

template <Real T>
Var<T> Tape<T>::use(const Param<T>& p) {
  if (!p.trainable) return Var<T>(p.value);
  const auto known = params_.find(&p);
  if (known == params_.end() || state_ != State::recording) {
    const Var<T> x = append({{"param", p.value.shape(), {}, &p}}, p.value);
    params_[&p] = x.slot_;
    return x;
  }
  Var<T> again(tap_ == nullptr ? p.value : at(known->second).replaced);
  again.tape_ = self_;
  again.slot_ = known->second;
  return again;
}

template <Real T>
std::size_t Tape<T>::checked(Index place) const {
  require<Error>(place >= 0 && place < size(), "tape: no place {} among {}", place, size());
  return static_cast<std::size_t>(place);
}

template <Real T>
double Tape<T>::lap() {
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(now - std::exchange(lap_, now)).count();
}

template <Real T>
Var<T> Tape<T>::record(std::string_view name, Tensor<T> y, const std::vector<Var<T>>& inputs,
                       Backward<T> backward, const Flops& flops) {
  require<Error>(name != "leaf" && name != "param", "record: '{}' is not an op's name", name);
  Tape* tape = nullptr;
  std::vector<Index> slots;
  for (const Var<T>& x : inputs) {
    slots.push_back(x.slot_);
    if (!x.tracked()) continue;
    require<Error>(
        *x.tape_ != nullptr,
        "record '{}': the tape of input {} was destroyed; its value goes on as a constant "
        "by detach()",
        name, slots.size() - 1);
    require<Error>(tape == nullptr || tape == *x.tape_, "record '{}': inputs are on two tapes",
                   name);
    tape = *x.tape_;
  }
  if (tape == nullptr) return Var<T>(std::move(y));
  require<Error>(backward != nullptr,
                 "record '{}': an input needs a gradient, but there is no "
                 "backward",
                 name);
  Record row{{std::string(name), y.shape(), std::move(slots)}, std::move(backward)};
  if (tape->profile_ != nullptr) {
    // What ran since the last record is this op: forward is one op after the other.
    Cost forward{.calls = 1, .seconds = tape->lap(), .flops = flops.forward};
    row.cost = {.calls = 1, .flops = flops.backward};
    forward.bytes = row.cost.bytes = bytes_of(y.shape(), sizeof(T));
    for (const Var<T>& x : inputs) {
      if (x.absent()) continue;
      const double size = bytes_of(x.shape(), sizeof(T));
      forward.bytes += size;
      row.cost.bytes += x.tracked() ? 2 * size : size;  // read again, and its gradient
    }
    tape->profile_->forward(name, forward);
  }
  return tape->append(std::move(row), std::move(y));
}

template <Real T>
void Tape<T>::backward(const Var<T>& loss, T seed) {
  propagate(loss, seed);
  deliver({this});
}

template <Real T>
void Tape<T>::backward(const Var<T>& y, Tensor<T> dy) {
  run_backward(y, std::move(dy));
  deliver({this});
}

template <Real T>
void Tape<T>::propagate(const Var<T>& loss, T seed) {
  require(loss.value().size() == 1, "backward: the loss has shape {}, not one element",
          loss.shape());
  run_backward(loss, Tensor<T>::full(loss.shape(), seed));
}

template <Real T>
void Tape<T>::propagate(const Var<T>& y, Tensor<T> dy) {
  run_backward(y, std::move(dy));
}

template <Real T>
Tensor<T> Tape<T>::gradient_at(Index place) const {
  require<Error>(state_ == State::propagated, "gradient_at: backward has not run yet");
  return grads_[checked(place)];
}

template <Real T>
std::vector<Tensor<T>> Tape<T>::pull(Index place, const Tensor<T>& dy,
                                     std::vector<Tensor<T>> before) {
  Record& r = records_[checked(place)];
  require(dy.shape() == r.shape, "pull: gradient {} of '{}' of shape {}", dy.shape(), r.name,
          r.shape);
  require(before.size() <= r.inputs.size(), "pull: {} gradients for the {} inputs of '{}'",
          before.size(), r.inputs.size(), r.name);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (r.inputs[i] >= 0 && !before[i].empty())
      require(before[i].shape() == at(r.inputs[i]).shape,
              "pull: gradient {} for input {} of '{}' of shape {}", before[i].shape(), i, r.name,
              at(r.inputs[i]).shape);
  const Backward<T> step = std::exchange(r.backward, nullptr);
  require<Error>(state_ == State::recording && step != nullptr,
                 "pull: '{}' has no backward, or it has run", r.name);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (r.inputs[i] >= 0) grads_[static_cast<std::size_t>(r.inputs[i])] = std::move(before[i]);
  Grads<T> d(*this, r.name, r.inputs);
  step(dy, d);
  require_shapes(r, grads_, records_);
  std::vector<Tensor<T>> after;
  for (const Index input : r.inputs)
    after.push_back(input < 0 ? Tensor<T>() : grads_[static_cast<std::size_t>(input)]);
  for (const Index input : r.inputs)
    if (input >= 0) grads_[static_cast<std::size_t>(input)] = {};
  return after;
}

template <Real T>
void Tape<T>::run_backward(const Var<T>& y, Tensor<T> dy) {
  require<Error>(state_ == State::recording,
                 "backward: this tape was consumed by an earlier backward; run the forward again");
  require<Error>(y.tape_ == self_,
                 "backward: the result was not recorded on this tape, so nothing has a gradient "
                 "(gradients are plain tensors: second derivatives are out of scope)");
  require(dy.shape() == y.shape(), "backward: gradient {} of a result {}", dy.shape(), y.shape());
  state_ = State::running;
  grads_[static_cast<std::size_t>(y.slot_)] = std::move(dy);
  if (profile_ != nullptr) lap();
  try {
    for (std::size_t i = records_.size(); i-- > 0;) {
      Record& r = records_[i];
      const Backward<T> step = std::exchange(r.backward, nullptr);
      if (grads_[i].empty() || !step) continue;  // leaves and parameters keep theirs
      const Tensor<T> up = std::exchange(grads_[i], {});
      Grads<T> d(*this, r.name, r.inputs);
      step(up, d);
      require_shapes(r, grads_, records_);
      if (profile_ == nullptr) continue;
      r.cost.seconds = lap();
      profile_->backward(r.name, r.cost);
    }
  } catch (...) {
    state_ = State::failed;
    throw;
  }
  state_ = State::propagated;
}

template <Real T>
void Tape<T>::add_up(const Param<T>* p, const std::vector<Tape*>& tapes) {
  for (Tape* tape : tapes) {
    const auto slot = tape->params_.find(p);
    if (slot == tape->params_.end()) continue;
    Tensor<T>& gradient = tape->grads_[static_cast<std::size_t>(slot->second)];
    if (!gradient.empty()) accumulate(p->grad, std::exchange(gradient, {}));
  }
}

template <Real T>
void Tape<T>::deliver(const std::vector<Tape*>& tapes) {
  std::vector<const Param<T>*> params;  // of all tapes, each once
  std::unordered_set<const Param<T>*> known;
  for (const Tape* tape : tapes)
    require<Error>(tape->state_ == State::propagated, "deliver: there are no gradients to deliver");
  for (Tape* tape : tapes) {
    for (const Record& r : tape->records_)
      if (r.param != nullptr && known.insert(r.param).second) params.push_back(r.param);
    tape->state_ = State::consumed;
  }
  // Several tapes are those of a small model; of one tape, each addition runs in parallel itself.
  const auto count = static_cast<Index>(params.size());
  parallel_for(count, tapes.size() > 1 ? 1 : std::max<Index>(1, count),
               [&](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i)
                   add_up(params[static_cast<std::size_t>(i)], tapes);
               });
}

template <Real T>
Tensor<T> Tape<T>::grad(const Var<T>& leaf) const {
  require<Error>(
      leaf.tape_ == self_ && records_[static_cast<std::size_t>(leaf.slot_)].name == "leaf",
      "grad: this is not a leaf of this tape");
  require<Error>(state_ == State::consumed, "grad: backward {}",
                 state_ == State::failed ? "did not finish" : "has not run yet");
  const Tensor<T>& g = grads_[static_cast<std::size_t>(leaf.slot_)];
  return g.empty() ? Tensor<T>::zeros(leaf.shape()) : g;
}

template <Real T>
std::vector<std::string> Tape<T>::op_names() const {
  std::vector<std::string> names;
  for (const Record& r : records_) names.push_back(r.name);
  return names;
}

template class Tape<float>;
template class Tape<double>;
template class Grads<float>;
template class Grads<double>;

}  // namespace headwise
