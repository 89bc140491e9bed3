#include "autograd/replay.hpp"

namespace headwise {
namespace {

template <Real T>
struct Keep : ValueTap<T> {
  std::vector<Tensor<T>> values;
  Tensor<T> at(Index, Tensor<T> value) override {
    values.emplace_back(value.shape(), value.values());  // not shared: it stays what it was
    return value;
  }
};

template <Real T>
struct Replace : ValueTap<T> {
  Index place;
  const Tensor<T>& x;
  Replace(Index p, const Tensor<T>& value) : place(p), x(value) {}
  Tensor<T> at(Index i, Tensor<T> value) override { return i == place ? x : value; }
};

struct Enough {};  // thrown through the forward pass once nobody needs the rest of it

/// Gives every place what was seen there, or what is asked for instead, and keeps what came.
template <Real T, class Choose>
struct Separate : ValueTap<T> {
  const Seen<T>& seen;
  Choose choose;
  Index last;
  std::vector<Tensor<T>> came;

  Separate(const Seen<T>& s, Choose c, Index l) : seen(s), choose(std::move(c)), last(l) {}
  Tensor<T> at(Index i, Tensor<T> value) override {
    require<Error>(
        i < static_cast<Index>(seen.values.size()) && seen.value(i).shape() == value.shape(),
        "gradcheck: the forward pass takes another way when its values change");
    came.push_back(seen.is_input(i) ? Tensor<T>() : std::move(value));
    if (i == last && i + 1 < static_cast<Index>(seen.values.size())) throw Enough{};
    return choose(i);
  }
};

template <Real T, class Choose>
std::vector<Tensor<T>> run(const Subject<T>& subject, const Seen<T>& seen, Choose choose,
                           Index last) {
  Separate<T, Choose> tap(seen, std::move(choose), last);
  Tape<T> tape(nullptr, &tap);
  try {
    subject.forward(tape);
  } catch (const Enough&) {
  }
  return std::move(tap.came);
}

}  // namespace

template <Real T>
Seen<T> see(const Subject<T>& subject) {
  Keep<T> tap;
  Tape<T> tape(nullptr, &tap);
  const Var<T> y = subject.forward(tape);
  Seen<T> seen{{}, std::move(tap.values), y.value(), tape.place(y)};
  for (Index i = 0; i < tape.size(); ++i) seen.entries.push_back(tape.entry(i));
  return seen;
}

template <Real T>
Tensor<T> with(const Subject<T>& subject, Index place, const Tensor<T>& x) {
  Replace<T> tap(place, x);
  Tape<T> tape(nullptr, &tap);
  return subject.forward(tape).value();
}

template <Real T>
std::vector<Tensor<T>> each_alone(const Subject<T>& subject, const Seen<T>& seen,
                                  const Instead<T>& instead, Index last) {
  const auto choose = [&](Index i) {
    const Tensor<T>& other = instead[static_cast<std::size_t>(i)];
    return other.empty() ? seen.value(i) : other;
  };
  return run(subject, seen, choose, last);
}

template <Real T>
Tensor<T> alone(const Subject<T>& subject, const Seen<T>& seen, Index record, Index place,
                const Tensor<T>& x) {
  const auto choose = [&](Index i) { return i == place ? x : seen.value(i); };
  return std::move(run(subject, seen, choose, record).back());
}

#define HEADWISE_INSTANTIATE(T)                                                                    \
  template Seen<T> see(const Subject<T>&);                                                         \
  template Tensor<T> with(const Subject<T>&, Index, const Tensor<T>&);                             \
  template std::vector<Tensor<T>> each_alone(const Subject<T>&, const Seen<T>&, const Instead<T>&, \
                                             Index);                                               \
  template Tensor<T> alone(const Subject<T>&, const Seen<T>&, Index, Index, const Tensor<T>&);
HEADWISE_INSTANTIATE(float)
HEADWISE_INSTANTIATE(double)
#undef HEADWISE_INSTANTIATE

}  // namespace headwise
