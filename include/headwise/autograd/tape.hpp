// Reverse-mode differentiation: an append-only tape of records. The order of execution is a
// topological order, so backward is a loop from the end. First derivatives only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "headwise/autograd/param.hpp"
#include "headwise/autograd/profile.hpp"
#include "headwise/core/tensor.hpp"

namespace headwise {

template <Real T>
class Tape;

/// A tensor as the result of a computation: its value and, if a tape is watching, its place there.
/// A Var made from a tensor is a constant; a default Var is absent (a bias that is not there).
/// Where its tape is gone, an op that takes it throws Error; its value stays.
template <Real T>
class Var {
 public:
  Var() = default;
  Var(Tensor<T> value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const Tensor<T>& value() const { return value_; }
  [[nodiscard]] const Shape& shape() const { return value_.shape(); }
  [[nodiscard]] T item() const { return value_.item(); }
  [[nodiscard]] bool absent() const { return value_.empty(); }
  /// Whether backward will ask for its gradient.
  [[nodiscard]] bool tracked() const { return tape_ != nullptr; }
  /// Its value as a constant, for any tape: no gradient goes through it.
  [[nodiscard]] Var detach() const { return Var(value_); }

 private:
  friend class Tape<T>;
  Tensor<T> value_;
  std::shared_ptr<Tape<T>*> tape_;  // holds null once the tape is gone; null: a constant
  Index slot_ = -1;
};

/// Where backward puts its part of the gradient of one input: x = product + beta x.
template <Real T>
struct Target {
  Tensor<T>* x = nullptr;  ///< null: nobody wants it
  T beta = 0;              ///< 0: x is uninitialized, write all of it; 1: add to it
  explicit operator bool() const { return x != nullptr; }
};

/// The gradients of a record's inputs, during its backward. Contributions add up, never replace.
/// Each call throws Error for an input that the record does not have.
template <Real T>
class Grads {
 public:
  /// The gradient of input i so far, zeros at first: add to it. Null when nobody wants it.
  Tensor<T>* operator[](Index i);
  /// The same for a matrix product, which need not read what is not there yet.
  Target<T> into(Index i);
  /// Adds a finished contribution; the first one is taken as it is. Throws ShapeError unless it has
  /// the input's shape.
  void add(Index i, Tensor<T> contribution);
  [[nodiscard]] bool wants(Index i) const { return slot(i) >= 0; }

 private:
  friend class Tape<T>;
  Grads(Tape<T>& tape, std::string_view op, const std::vector<Index>& inputs)
      : tape_(tape), op_(op), inputs_(inputs) {}
  [[nodiscard]] Index slot(Index i) const;

  Tape<T>& tape_;
  std::string_view op_;
  const std::vector<Index>& inputs_;
};

/// Given the gradient dy of a record's result, adds to the gradients d of its inputs. What it
/// captures is what the tape saves.
template <Real T>
using Backward = std::function<void(const Tensor<T>& dy, Grads<T>& d)>;

/// Sees every value that a tape takes in, by its place there (0, 1, ... in order), and says what
/// stands there instead: the value itself, or another of its shape, from which later ops go on.
template <Real T>
struct ValueTap {
  virtual ~ValueTap() = default;
  virtual Tensor<T> at(Index place, Tensor<T> value) = 0;
};

/// Floating-point operations of an op's matrix products, for a profile.
struct Flops {
  double forward = 0, backward = 0;
  /// Of products whose two factors both get a gradient: two products back for each.
  static Flops of_products(double forward) { return {forward, 2 * forward}; }
};

/// What one forward pass did, for one backward pass.
template <Real T>
class Tape {
 public:
  /// With a profile, the time of every op is added to it; a tap sees and may replace every value.
  explicit Tape(Profile* profile = nullptr, ValueTap<T>* tap = nullptr)
      : profile_(profile), tap_(tap) {}
  Tape(const Tape&) = delete;  // Vars point to it
  Tape& operator=(const Tape&) = delete;
  ~Tape() { *self_ = nullptr; }

  /// An input whose gradient grad() will tell.
  Var<T> leaf(Tensor<T> value);
  /// A parameter whose gradient backward adds to p.grad; a constant when it is not trainable. Used
  /// twice, it is one input: a tied weight has one gradient. Stays where it is until backward has
  /// run.
  Var<T> use(const Param<T>& p);

  /// Backward from a scalar: every parameter and leaf gets seed * d loss / d it. Consumes the tape:
  /// saved tensors are freed on the way, and a second backward throws Error. Throws ShapeError
  /// when the loss has more than one element, Error when it was not recorded here.
  void backward(const Var<T>& loss, T seed = 1);
  /// Backward from any result, given the gradient dy of some scalar with respect to it.
  void backward(const Var<T>& y, Tensor<T> dy);
  /// The two halves of backward(loss, seed), for tapes that work side by side: propagate() keeps
  /// the gradients of parameters here, deliver() adds those of several tapes to the Params, in the
  /// order of the tapes.
  void propagate(const Var<T>& loss, T seed = 1);
  void propagate(const Var<T>& y, Tensor<T> dy);
  static void deliver(const std::vector<Tape*>& tapes);
  /// The gradient of a leaf, after backward: zeros when nothing reached it. A plain tensor: put
  /// into another graph it is a constant there, there are no second derivatives.
  [[nodiscard]] Tensor<T> grad(const Var<T>& leaf) const;

  /// What stands at a place: a record, or a leaf ("leaf") or parameter ("param").
  struct Entry {
    std::string name;
    Shape shape;                      // of the value
    std::vector<Index> inputs;        // their places, -1 for a constant
    const Param<T>* param = nullptr;  // null: not a parameter
  };
  [[nodiscard]] Index size() const { return static_cast<Index>(records_.size()); }
  /// Throws Error, as all that take a place do, unless 0 <= place < size().
  [[nodiscard]] const Entry& entry(Index place) const { return at(place); }
  /// Where a Var stands, -1 for a constant.
  [[nodiscard]] Index place(const Var<T>& x) const { return x.tape_ == self_ ? x.slot_ : -1; }
  /// What propagate() left at a leaf or parameter; empty when nothing reached it.
  [[nodiscard]] Tensor<T> gradient_at(Index place) const;
  /// The backward of one record alone, before any other: the gradients of its inputs (empty for a
  /// constant) given dy, added to those in `before`, a tensor a place or empty. A record has one
  /// backward: a second call for it throws Error.
  std::vector<Tensor<T>> pull(Index place, const Tensor<T>& dy, std::vector<Tensor<T>> before = {});

  /// Names of the records so far, in order; "leaf" and "param" for inputs.
  [[nodiscard]] std::vector<std::string> op_names() const;

  /// See record(), which ops call.
  static Var<T> record(std::string_view name, Tensor<T> y, const std::vector<Var<T>>& inputs,
                       Backward<T> backward, const Flops& flops);

 private:
  friend class Grads<T>;
  struct Record : Entry {
    Backward<T> backward{};  // null for leaves and parameters
    Cost cost{};             // of backward, as far as it is known beforehand
    Tensor<T> replaced{};    // a parameter's value, where a tap put another in its place
  };
  enum class State { recording, running, propagated, consumed, failed };

  Var<T> append(Record record, Tensor<T> value);
  /// Adds each tape's gradient of p to it.
  static void add_up(const Param<T>* p, const std::vector<Tape*>& tapes);
  void run_backward(const Var<T>& y, Tensor<T> dy);
  [[nodiscard]] std::size_t checked(Index place) const;
  [[nodiscard]] const Record& at(Index place) const { return records_[checked(place)]; }
  /// Seconds since this was last called.
  double lap();

  // What Vars hold: it outlives the tape, and then says that there is none.
  std::shared_ptr<Tape*> self_ = std::make_shared<Tape*>(this);
  std::vector<Record> records_;
  std::vector<Tensor<T>> grads_;  // one a record, empty until something arrives
  std::unordered_map<const Param<T>*, Index> params_;  // their slots
  State state_ = State::recording;
  Profile* profile_;
  ValueTap<T>* tap_;
  std::chrono::steady_clock::time_point lap_ = std::chrono::steady_clock::now();
};

/// The result y of an op, put on the tape of its inputs with its backward; a constant when no
/// input is tracked. `name` is the op's in ops.def. Throws Error when the inputs are on two
/// tapes, when the tape is consumed or gone, or when backward is null (a result that would silently
/// cut the graph: use a constant instead).
template <Real T>
Var<T> record(std::string_view name, Tensor<T> y,
              const std::type_identity_t<std::vector<Var<T>>>& inputs,
              std::type_identity_t<Backward<T>> backward, const Flops& flops = {}) {
  return Tape<T>::record(name, std::move(y), inputs, std::move(backward), flops);
}

extern template class Tape<float>;
extern template class Tape<double>;
extern template class Grads<float>;
extern template class Grads<double>;

}  // namespace headwise
