#include "headwise/autograd/profile.hpp"

namespace headwise {

Profile::Row& Profile::row(std::string_view name) {
  const auto found = rows_.find(name);
  return found != rows_.end() ? found->second : rows_[std::string(name)];
}

void Profile::add(Cost& sum, const Cost& x) {
  sum.calls += x.calls;
  sum.seconds += x.seconds;
  sum.flops += x.flops;
  sum.bytes += x.bytes;
}

void Profile::merge(const Profile& other, double share) {
  for (const auto& [name, theirs] : other.rows_) {
    Row scaled = theirs;
    scaled.forward.seconds *= share;
    scaled.backward.seconds *= share;
    forward(name, scaled.forward);
    backward(name, scaled.backward);
  }
}

}  // namespace headwise
